// Checks the files that a command will write.
#include "cli/networks/output_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>

#include "cli/output/table.h"
#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati::cli {
namespace {

// The device and inode of a file; for a file that does not exist yet, those of its folder, and its name.
using FileIdentity = std::tuple<dev_t, ino_t, std::string>;

// Empty for devices, pipes and folders, and for paths without a folder: they are rejected elsewhere or cannot
// be overwritten.
std::optional<FileIdentity> identity_of(std::string const& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) return {};
    return FileIdentity{status.st_dev, status.st_ino, ""};
  }
  std::filesystem::path const place(path);
  std::string const folder = place.has_parent_path() ? place.parent_path().string() : ".";
  if (::stat(folder.c_str(), &status) != 0) return {};
  return FileIdentity{status.st_dev, status.st_ino, place.filename().string()};
}

}  // namespace

void check_files(std::vector<OutputFile> outputs, std::vector<InputFile> const& inputs) {
  // This process appends its calls to that file at exit.
  if (char const* const record = std::getenv("COSMATI_RECORD")) outputs.push_back({"COSMATI_RECORD", record});
  std::map<FileIdentity, OutputFile const*> written;
  for (OutputFile const& output : outputs) {
    if (output.path.empty()) continue;
    keep_stdout_for(output.path);
    try {
      io::check_writable(output.path);
    } catch (Error const& error) {
      throw Error(error.code(), output.option + " " + error.what());
    }
    auto const identity = identity_of(output.path);
    if (!identity) continue;
    auto const [other, first] = written.emplace(*identity, &output);
    if (!first)
      throw Error(ErrorCode::bad_request, other->second->option + " and " + output.option + " both name " +
                                              output.path + "; they must be different files");
  }
  for (InputFile const& input : inputs) {
    auto const identity = input.path.empty() ? std::nullopt : identity_of(input.path);
    auto const found = identity ? written.find(*identity) : written.end();
    if (found == written.end() || found->second->replaces == input.option) continue;
    throw Error(ErrorCode::bad_request, found->second->option + " " + found->second->path +
                                            " would overwrite an input: it is the file that " + input.option +
                                            " " + input.path + " reads; choose another file");
  }
}

std::vector<InputFile> inputs_of(Common const& common, std::vector<InputFile> others) {
  if (common.tuning != "none") others.push_back({"--tuning", common.tuning});
  others.push_back({"--device-description", common.device_description});
  return others;
}

std::vector<InputFile> data_files(std::string const& option, std::string const& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return {{option, path}};
  std::vector<InputFile> files;
  for (auto entry = fs::directory_iterator(path, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    std::string const file = entry->path().string();
    auto const ends_with = [&file](char const* ending) { return file.ends_with(ending); };
    constexpr char const* endings[] = {"-ubyte", "-ubyte.gz", ".png", ".PNG"};
    if (std::any_of(std::begin(endings), std::end(endings), ends_with)) files.push_back({option, file});
  }
  std::sort(files.begin(), files.end(),
            [](InputFile const& a, InputFile const& b) { return a.path < b.path; });
  return files;
}

}  // namespace cosmati::cli
