// Parses the options of one problem of a suite.
#include "cli/options/problem_options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/options/parse_failure.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {

void parse_problem(ProblemOptions const& problem, std::function<void(CLI::App&)> const& declare) {
  CLI::App command("", "a problem of the suite");
  declare(command);
  std::vector<std::string> words(problem.rbegin(), problem.rend());
  try {
    command.parse(words);
    for (CLI::Option const* const option : command.get_options())
      if (option->count() > 0 && !option->get_configurable())
        throw Error(
            ErrorCode::bad_file,
            "a problem of the suite has " + option->get_name() +
                ", which belongs on the command line, since it applies to all problems; a line of a suite "
                "has the size, the types and the parameters of one problem");
  } catch (CLI::ParseError const& error) {
    throw Error(ErrorCode::bad_file, explain_parse_failure(command, error.what(), problem));
  }
}

}  // namespace cosmati::cli
