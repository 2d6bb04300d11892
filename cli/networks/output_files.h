// Checks of output files before the work.
#pragma once
#include <string>
#include <vector>

#include "cli/options/options.h"

namespace cosmati::cli {

struct OutputFile {
  std::string option, path;   // "--out", "d.npy"; no path: nothing will be written
  std::string replaces = {};  // the option of the input that this one may be: what is read, updated and saved
};

struct InputFile {
  std::string option, path;  // "--a", "a.npy"; no path: nothing is read
};

// io::check_writable() of each output, whose sentence then names the option. Throws Error(bad_request) if two
// outputs are one file, or an output is one of the inputs: not by their names, but by what these lead to
// (device and inode, or, of what does not exist yet, its folder's and the name). Devices and pipes may be
// anything. COSMATI_RECORD, where it is set, is one of the outputs. Tables and lines go to stderr from here
// on where an output is stdout.
void check_files(std::vector<OutputFile> outputs, std::vector<InputFile> const& inputs);

// Files that the shared options name, --tuning and --device-description.
std::vector<InputFile> inputs_of(Common const& common, std::vector<InputFile> others = {});

// A folder's IDX files and PNGs, or the one file that `path` is, under the name of `option`. A model may be
// saved beside its data.
std::vector<InputFile> data_files(std::string const& option, std::string const& path);

}  // namespace cosmati::cli
