# Embeds texts as strings in the program: the template of `cosmati plot`, and the script of the peer torch.
#
# Included by the build, it adds the generated sources to the library `cosmati_cli`; run as a script
# (cmake -DTEXT_FILE=cli/plot/plot.html -DTEXT_FUNCTION=plot_template -DTEXT_HEADER=cli/plot/page.h -DTEXT_OUTPUT=FILE -P page.cmake)
# it writes such a source.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(cosmati_embed file function header)
    set(source ${PROJECT_BINARY_DIR}/generated/${function}.cpp)
    set(this ${PROJECT_SOURCE_DIR}/cmake/page.cmake)
    add_custom_command(OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -DTEXT_FILE=${PROJECT_SOURCE_DIR}/${file} -DTEXT_FUNCTION=${function} -DTEXT_HEADER=${header}
              -DTEXT_OUTPUT=${source} -P ${this}
      DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${this}
      COMMENT "Embedding ${file}" VERBATIM)
    target_sources(cosmati_cli PRIVATE ${source})
  endfunction()
  cosmati_embed(cli/plot/plot.html plot_template cli/plot/page.h)
  cosmati_embed(cli/bench/peers/torch_peer.py torch_script cli/bench/peers/torch_peer.h)
  return()
endif()

file(READ "${TEXT_FILE}" text)
file(WRITE "${TEXT_OUTPUT}"
"// Made by cmake/page.cmake.
#include \"${TEXT_HEADER}\"

namespace cosmati::cli {

std::string_view ${TEXT_FUNCTION}() { return R\"COSMATI(${text})COSMATI\"; }

}  // namespace cosmati::cli
")
