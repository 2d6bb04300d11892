# Precompiles the headers that most files include, once per target. A file that forgets to include one of them compiles
# anyway; `tools/check.py includes` finds it.
option(COSMATI_PRECOMPILE "Precompile the headers that most files include" ON)

# cosmati_precompile(TARGET [HEADER...]): precompiles headers of the standard library and fmt, and HEADER...
function(cosmati_precompile target)
  if(COSMATI_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <cmath> <functional> <map> <memory> <optional> <span> <string>
      <utility> <vector> <fmt/format.h> ${ARGN})
  endif()
endfunction()
