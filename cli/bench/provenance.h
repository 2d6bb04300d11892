// Provenance of a figure: the kernels and the command.
#pragma once
#include <string>
#include <vector>

#include "cli/operations/task.h"

namespace cosmati::cli {

// jit::digest_of() of the kernels that the plan for `device` runs, and of the plan's text; empty if they are
// not compiled at run time.
std::string kernel_digest(Task const& task, Device const& device, PlanOptions const& options);

// The command being executed, quoted for a shell, without options that specify where results go or for which
// GPU plans are made: "cosmati bench gemm ...". It is this process's command line unless set_command()
// replaced the words after the program's name.
std::string command_text();
void set_command(std::vector<std::string> words);

}  // namespace cosmati::cli
