// How threads of the OpenMP runtime wait for each other.
#pragma once
#include <string_view>

namespace cosmati::cpu {

// Whether other processes run on at least an eighth of the processors, by the text of /proc/stat, in which
// this process counts as one that runs. Threads that wait for each other in a loop then keep them, and
// ourselves, from the processors.
bool processors_are_shared(std::string_view proc_stat, int processors);

// The same of this machine at this moment; false where there is no /proc/stat.
bool processors_are_shared_now();

}  // namespace cosmati::cpu
