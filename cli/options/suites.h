// Suites: named lists of problems for bench, from bench/suites/*.txt.
#pragma once
#include <string>
#include <vector>

namespace cosmati::cli {

// A problem as options of its subject: {"--size", "64x6x14x14x16x5x5", "--layout", "chwn"}.
using ProblemOptions = std::vector<std::string>;

struct Suite {
  std::string name;     // the file's name without .txt
  std::string subject;  // "gemm"
  std::string about;
  std::vector<ProblemOptions> problems;
};

// Reads a suite. The first lines of the file are "subject: NAME" and "about: TEXT"; then each line is a
// problem, as options; # begins a comment. Throws Error(bad_file).
Suite read_suite(std::string const& path);

// The suites in bench/suites above the program's folder, or in share/cosmati/suites next to it.
std::vector<Suite> all_suites();
Suite find_suite(std::string const& name);  // throws Error(bad_request) with the available names

// The layers of a model: a list like a suite, in which the word TOKENS in a size stands for the extent that
// varies. Reads the list `name` in bench/models (or share/cosmati/models), or else the file of this name.
Suite find_model(std::string const& name);

// The suite named `name` and the one in `file`; either may be empty. `lines` ("1,4", counted from 1) selects
// problems; empty: all. Throws Error(bad_request) if a suite is for another subject or lacks such a line.
std::vector<Suite> requested_suites(std::string const& subject, std::string const& name,
                                    std::string const& file, std::string const& lines = {});

}  // namespace cosmati::cli
