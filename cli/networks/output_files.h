// Checks of output files before any computation.
#pragma once
#include <string>
#include <vector>

#include "cli/options/options.h"

namespace cosmati::cli {

struct OutputFile {
  std::string option, path;  // "--out", "d.npy"; empty path: not written
  std::string replaces =
      {};  // the input option whose file this output may replace, for state that is read, updated and saved
};

struct InputFile {
  std::string option, path;  // "--a", "a.npy"; empty path: not read
};

// Calls io::check_writable() for each output; errors name the option. Throws Error(bad_request) if two
// outputs are the same file or an output is an input, comparing device and inode rather than names (for files
// that do not exist yet, the folder's device and inode and the name). Devices and pipes are exempt.
// COSMATI_RECORD, if set, counts as an output. If an output is stdout, tables and messages are printed to
// stderr from then on.
void check_files(std::vector<OutputFile> outputs, std::vector<InputFile> const& inputs);

// Input files of the shared options --tuning and --device-description.
std::vector<InputFile> inputs_of(Common const& common, std::vector<InputFile> others = {});

// The IDX and PNG files of a folder, or the single file `path`, listed under the name of `option`, so that a
// model may be saved in the folder of its data.
std::vector<InputFile> data_files(std::string const& option, std::string const& path);

}  // namespace cosmati::cli
