// Tuning files on disk.
#pragma once
#include <string>

#include "cosmati/ops/tuning.h"

namespace cosmati::io {

// Throws Error(bad_file) with file, line and reason.
TuningTable read_tuning(std::string const& path);

// Adds to the file at `path`, which is created if it does not exist, by TuningTable's rules; returns its new
// contents. Concurrent programs wait for each other, and readers see the old or the new file. Throws Error:
// bad_file if the file is malformed, which leaves it unchanged; system.
TuningTable add_to_tuning(std::string const& path, TuningTable const& lines);

// Returns the lines to which add_to_tuning() would add: those of the file, none if it does not exist. Creates
// nothing. Throws the errors of add_to_tuning() that can be predicted.
TuningTable tuning_to_add_to(std::string const& path);

}  // namespace cosmati::io
