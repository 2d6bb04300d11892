// Parses the options of one problem of a suite.
#include "cli/options/problem_options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/options/parse_failure.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

// Options that a verb reads once, before the first problem.
constexpr char const* options_of_a_run[] = {"--suite",        "--shapes",
                                            "--images",       "--out",
                                            "--json",         "--backend",
                                            "--device",       "--seed",
                                            "--count",        "--data",
                                            "--fail-below",   "--slices",
                                            "--hot",          "--device-description",
                                            "--cache",        "--budget",
                                            "--arch",         "--slice-seconds",
                                            "--single-calls", "--threads",
                                            "--lines",        "--digest",
                                            "--peer-log",     "--verify-below"};

}  // namespace

void parse_problem(ProblemOptions const& problem, std::function<void(CLI::App&)> const& declare) {
  CLI::App command("", "a problem of the suite");
  declare(command);
  std::vector<std::string> words(problem.rbegin(), problem.rend());
  try {
    command.parse(words);
    for (char const* const name : options_of_a_run)
      if (CLI::Option const* const option = command.get_option_no_throw(name);
          option != nullptr && option->count() > 0)
        throw Error(
            ErrorCode::bad_file,
            std::string("a problem of the suite has ") + name +
                ", which belongs on the command line, since it applies to all problems; a line of a suite "
                "has the size, the types and the parameters of one problem");
  } catch (CLI::ParseError const& error) {
    throw Error(ErrorCode::bad_file, explain_parse_failure(command, error.what(), problem));
  }
}

}  // namespace cosmati::cli
