// The options of one problem of a suite.
#include "cli/problem_options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/parse_failure.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {

void parse_problem(ProblemOptions const& problem, std::function<void(CLI::App&)> const& declare) {
  CLI::App command("", "a problem of the suite");
  declare(command);
  std::vector<std::string> words(problem.rbegin(), problem.rend());
  try {
    command.parse(words);
  } catch (CLI::ParseError const& error) {
    throw Error(ErrorCode::bad_file, explain_parse_failure(command, error.what(), problem));
  }
}

}  // namespace cosmati::cli
