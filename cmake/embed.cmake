# Embeds the device headers as strings in the library, so that the run-time compiler needs none of our files.
#
# Included by the build, it adds the generated source to the library `cosmati`; run as a script
# (cmake -DEMBED_ROOT=include -DEMBED_HEADERS="a.h|b.h" -DEMBED_OUTPUT=FILE -P embed.cmake) it writes that source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  foreach(folder core arch tile gemm gemm/f64 gemm/operands gemm/small conv conv/fft conv/depthwise conv/grouped conv/pointwise conv/small_c conv/winograd primitive network)
    file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/cosmati/${folder}/*.h)
    list(APPEND embedded_headers ${headers})
  endforeach()
  # These are for the host only.
  list(FILTER embedded_headers EXCLUDE REGEX "/arch/emulator\\.h$|/launch\\.h$")
  list(TRANSFORM embedded_headers PREPEND ${PROJECT_SOURCE_DIR}/include/ OUTPUT_VARIABLE embedded_files)
  list(JOIN embedded_headers "|" embedded_list)
  set(embedded_source ${PROJECT_BINARY_DIR}/generated/embedded_headers.cpp)
  add_custom_command(OUTPUT ${embedded_source}
    COMMAND ${CMAKE_COMMAND} -DEMBED_ROOT=${PROJECT_SOURCE_DIR}/include -DEMBED_HEADERS=${embedded_list}
            -DEMBED_OUTPUT=${embedded_source} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${embedded_files} ${CMAKE_CURRENT_LIST_FILE}
    COMMENT "Embedding the device headers" VERBATIM)
  target_sources(cosmati PRIVATE ${embedded_source})
  return()
endif()

string(REPLACE "|" ";" headers "${EMBED_HEADERS}")
set(table "")
foreach(header IN LISTS headers)
  file(READ "${EMBED_ROOT}/${header}" text)
  if(text MATCHES "\n[ \t]*#[ \t]*include[ \t]*<([^>]*)>")
    message(FATAL_ERROR "${header} includes <${CMAKE_MATCH_1}>: the run-time compiler has only our own headers. "
                        "A header for the host is left out in cmake/embed.cmake.")
  endif()
  file(SHA256 "${EMBED_ROOT}/${header}" digest)
  string(APPEND table "    {\"${header}\",\n     \"${digest}\",\n     R\"COSMATI(${text})COSMATI\"sv},\n")
endforeach()
file(WRITE "${EMBED_OUTPUT}"
"// Made by cmake/embed.cmake.
#include \"src/jit/embedded.h\"

namespace cosmati::jit {
namespace {
using namespace std::string_view_literals;  // whose lengths nobody counts at compile time
constexpr Header table[] = {
${table}};
}  // namespace

std::span<Header const> embedded_headers() { return table; }

}  // namespace cosmati::jit
")
