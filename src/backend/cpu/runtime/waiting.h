// How threads of the OpenMP runtime wait for each other.
#pragma once
#include <string_view>

namespace cosmati::cpu {

// Returns whether other processes run on at least an eighth of the processors, according to the text of
// /proc/stat, in which this process counts as running. Threads that spin while waiting then take processor
// time from them and from this process.
bool processors_are_shared(std::string_view proc_stat, int processors);

// The same for this machine at this moment; false if there is no /proc/stat.
bool processors_are_shared_now();

}  // namespace cosmati::cpu
