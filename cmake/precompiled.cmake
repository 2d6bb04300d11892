# What most files include, read once a target: the build with sanitizers turns it on, since clang++ spends more time on
# the standard library's headers than on ours. The optimised build does without, so that a file that forgets an include
# fails there.
option(COSMATI_PRECOMPILE "Precompile the headers that most files include" OFF)

# cosmati_precompile(TARGET [HEADER...]): the standard library's, fmt's and HEADER...
function(cosmati_precompile target)
  if(COSMATI_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <functional> <map> <memory> <optional> <span> <string>
      <utility> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()
