# What most files include, read once a target. A file that forgets one of these headers compiles all the same;
# `tools/check.py includes` finds it.
option(COSMATI_PRECOMPILE "Precompile the headers that most files include" ON)

# cosmati_precompile(TARGET [HEADER...]): the standard library's, fmt's and HEADER...
function(cosmati_precompile target)
  if(COSMATI_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <functional> <map> <memory> <optional> <span> <string>
      <utility> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()
