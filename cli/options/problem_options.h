// Problems of a suite: each is a line of options that override those of the command line.
#pragma once
#include <functional>

#include "cli/options/suites.h"

namespace CLI {
class App;
}

namespace cosmati::cli {

// Parses the options of one problem; `declare` declares the available ones. Throws Error(bad_file), also for
// options that apply to all problems, such as --out.
void parse_problem(ProblemOptions const& problem, std::function<void(CLI::App&)> const& declare);

}  // namespace cosmati::cli
