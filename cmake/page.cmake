# The template of `cosmati plot` as a string in the program.
#
# Included by the build, it adds the generated source to the library `cosmati_cli`; run as a script
# (cmake -DPAGE_FILE=cli/plot.html -DPAGE_OUTPUT=FILE -P page.cmake) it writes that source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(page_file ${PROJECT_SOURCE_DIR}/cli/plot.html)
  set(page_source ${PROJECT_BINARY_DIR}/generated/plot_template.cpp)
  add_custom_command(OUTPUT ${page_source}
    COMMAND ${CMAKE_COMMAND} -DPAGE_FILE=${page_file} -DPAGE_OUTPUT=${page_source} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${page_file} ${CMAKE_CURRENT_LIST_FILE}
    COMMENT "Embedding the template of plot" VERBATIM)
  target_sources(cosmati_cli PRIVATE ${page_source})
  return()
endif()

file(READ "${PAGE_FILE}" text)
file(WRITE "${PAGE_OUTPUT}"
"// Made by cmake/page.cmake.
#include \"cli/plot_page.h\"

namespace cosmati::cli {

std::string_view plot_template() { return R\"COSMATI(${text})COSMATI\"; }

}  // namespace cosmati::cli
")
