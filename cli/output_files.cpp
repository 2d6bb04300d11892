// Checks of the files that a command will write.
#include "cli/output_files.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "cli/table.h"
#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati::cli {

void check_output(std::string const& option, std::string const& path) {
  if (path.empty()) return;
  keep_stdout_for(path);
  try {
    io::check_writable(path);
  } catch (Error const& error) {
    throw Error(error.code(), option + " " + error.what());
  }
}

void check_distinct(std::vector<OutputFile> const& files) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> options;  // by the place that a path leads to
  for (auto const& [option, path] : files) {
    if (path.empty()) continue;
    keep_stdout_for(path);
    std::error_code failed;
    auto const place = fs::weakly_canonical(fs::absolute(path, failed), failed);
    auto const [other, first] = options.emplace(failed ? path : place.string(), option);
    if (!first)
      throw Error(ErrorCode::bad_request,
                  other->second + " and " + option + " both name " + path + "; they are two files");
  }
}

}  // namespace cosmati::cli
