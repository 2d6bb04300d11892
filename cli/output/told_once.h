// Prints a failure once for all processes of an mpirun on a machine.
#pragma once
#include <string>

namespace cosmati::cli {

// Prints the failure, like print_failure(). Under mpirun or srun, not where another process that the launcher
// started on this machine is printing the very same sentence: what one process alone has to say is always
// said. Each then waits a moment, so that mpirun, which ends all when the first ends, finds the sentence
// written.
void print_failure_once(std::string const& sentence);

}  // namespace cosmati::cli
