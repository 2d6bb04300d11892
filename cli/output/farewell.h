// The message when mpirun terminates this process because another one was lost.
#pragma once
#include <string>

namespace cosmati::cli {

// Installs a SIGTERM handler that prints "cosmati: SENTENCE, IMAGES of COUNT images are done; ..." and ends
// the process with status 143. Call once per process.
void say_farewell(std::string const& files, long long count);
void farewell_progress(long long images);

// Waits before exiting a signal handler, because mpirun may drop output that a process writes just before it
// exits.
void linger();

}  // namespace cosmati::cli
