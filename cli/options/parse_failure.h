// One sentence about a command line that does not parse.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cosmati::cli {

// `reason` is the parser's own message, used as a fallback.
std::string explain_parse_failure(CLI::App const& program, std::string const& reason,
                                  std::vector<std::string> const& arguments);

}  // namespace cosmati::cli
