// The files that a command will write, checked before the work.
#pragma once
#include <string>
#include <vector>

namespace cosmati::cli {

struct OutputFile {
  std::string option, path;  // "--out", "d.npy"; no path: nothing will be written
};

// io::check_writable() of the path; its sentence then names the option.
void check_output(std::string const& option, std::string const& path);
// Throws Error(bad_request) if two of them are one file, by whatever paths.
void check_distinct(std::vector<OutputFile> const& files);

}  // namespace cosmati::cli
