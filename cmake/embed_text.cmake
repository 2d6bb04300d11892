# The measured choices that the library contains, as a string (src/plan/built_in_tuning.h).
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

file(READ "${TEXT_INPUT}" text)
file(WRITE "${TEXT_OUTPUT}"
"// Made by cmake/embed_text.cmake.
#include <string_view>

namespace cosmati::plan {

std::string_view built_in_tuning_text() { return R\"COSMATI(${text})COSMATI\"; }

}  // namespace cosmati::plan
")
