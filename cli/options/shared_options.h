// Options shared by several commands: one table defines which command accepts which option, for parsing, help
// and messages.
#pragma once
#include <string>

#include "cli/options/options.h"

namespace cosmati::cli {

class Subject;

// Declares the shared options that `command` ("run", "train lenet5") accepts, and --json. `subject` restricts
// them to those that apply to the operation; it is null for other commands. `json_to_file` receives the
// optional file name of --json.
void add_shared_options(Options& options, Common& common, std::string const& command,
                        Subject const* subject = nullptr, std::string* json_to_file = nullptr);

// Where the shared option `option` can be used, for the error message of the command `path` ("run gemm",
// "train lenet5") that does not accept it: "it applies to run, verify, bench". Empty if it is not a shared
// option.
std::string use_of_shared_option(std::string const& option, std::string const& path);

}  // namespace cosmati::cli
