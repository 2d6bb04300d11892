// The options that several commands share: one table says who takes which, for parsing, help and messages.
#pragma once
#include <string>

#include "cli/options/options.h"

namespace cosmati::cli {

class Subject;

// Declares the shared options that `command` ("run", "train lenet5") takes, and --json. Of a command for
// operations only those that mean something for `subject`; null for the other commands. `json_to_file`:
// --json takes the name of a file as well, which goes there.
void add_shared_options(Options& options, Common& common, std::string const& command,
                        Subject const* subject = nullptr, std::string* json_to_file = nullptr);

// Where the shared option `option` can be used, for the message of the command `path` ("run gemm", "train
// lenet5") that does not take it: "it is for run, verify, bench". Empty if it is no shared option.
std::string use_of_shared_option(std::string const& option, std::string const& path);

}  // namespace cosmati::cli
