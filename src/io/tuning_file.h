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

// What add_to_tuning() would add to: the lines of the file, none where it does not exist yet. Nothing is
// made. Throws what add_to_tuning() would throw, as far as that can be told before.
TuningTable tuning_to_add_to(std::string const& path);

}  // namespace cosmati::io
