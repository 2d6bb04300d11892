// The message when mpirun terminates this process because another one was lost.
#pragma once
#include <string>

namespace cosmati::cli {

// Installs a SIGTERM handler that prints "cosmati: SENTENCE, IMAGES of COUNT images are done; ..." and ends
// the process with status 143. Call once per process.
void report_on_sigterm(std::string const& files, long long count);
void sigterm_report_progress(long long images);

// Waits before exiting a signal handler, because mpirun may drop output that a process writes just before it
// exits.
void linger();

}  // namespace cosmati::cli
