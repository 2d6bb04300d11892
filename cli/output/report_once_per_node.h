// Prints a failure once for all processes of an mpirun on a machine.
#pragma once
#include <string>

namespace cosmati::cli {

// Prints the failure, like print_failure(). Under mpirun or srun, prints nothing if another process that the
// launcher started on this machine prints the same message; a message of only one process is always printed.
// Then waits briefly, so that the message is written before the first exit makes mpirun terminate all
// processes.
void report_once_per_node(std::string const& sentence);

}  // namespace cosmati::cli
