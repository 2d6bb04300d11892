# Embeds the library's measured choices as strings (src/plan/built_in_tuning.h).
#
# Included by the build, it adds the generated source to the library `cosmati`; run as a script
# (cmake -DTEXT_INPUT=FILE -DTEXT_OUTPUT=FILE -P embed_text.cmake) it writes that source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(text_input ${PROJECT_SOURCE_DIR}/src/plan/measured/h200.txt)
  set(text_source ${PROJECT_BINARY_DIR}/generated/built_in_tuning_text.cpp)
  add_custom_command(OUTPUT ${text_source}
    COMMAND ${CMAKE_COMMAND} -DTEXT_INPUT=${text_input} -DTEXT_OUTPUT=${text_source} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${text_input} ${CMAKE_CURRENT_LIST_FILE}
    COMMENT "Embedding the measured choices" VERBATIM)
  target_sources(cosmati PRIVATE ${text_source})
  return()
endif()

file(STRINGS "${TEXT_INPUT}" lines)
set(table "")
foreach(line IN LISTS lines)
  string(APPEND table "    R\"COSMATI(${line})COSMATI\",\n")
endforeach()
file(WRITE "${TEXT_OUTPUT}"
"// Made by cmake/embed_text.cmake.
#include \"src/plan/built_in_tuning.h\"

namespace cosmati::plan {
namespace {
constexpr std::string_view lines[] = {
${table}};
}  // namespace

std::span<std::string_view const> built_in_tuning_lines() { return lines; }

}  // namespace cosmati::plan
")
