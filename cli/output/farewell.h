// What is said when mpirun ends this process because another one was lost.
#pragma once
#include <string>

namespace cosmati::cli {

// From now on SIGTERM prints "cosmati: SENTENCE, IMAGES of COUNT images are done; ..." and ends the process
// with status 143. Once a process.
void say_farewell(std::string const& files, long long count);
void farewell_progress(long long images);

// In a signal handler, before the end: mpirun, once it ends a job, may drop what a process wrote just before
// it ended.
void linger();

}  // namespace cosmati::cli
