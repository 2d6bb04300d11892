// Tuning files on disk.
#pragma once
#include <string>

#include "cosmati/ops/tuning.h"

namespace cosmati::io {

// Throws Error(bad_file) with file, line and reason.
TuningTable read_tuning(std::string const& path);

// Adds to the file at `path`, which is made if it does not exist, by TuningTable's rules; returns all that it
// holds then. Programs that do so at the same time wait for each other, and readers see the old file or the
// new one. Throws Error: bad_file where the file is none, which is left alone; system.
TuningTable add_to_tuning(std::string const& path, TuningTable const& lines);

}  // namespace cosmati::io
