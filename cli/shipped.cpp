// Searches upward from the program's folder, since an installation may have been moved and a build lies
// inside its source tree.
#include "cli/shipped.h"

#include <filesystem>

#include "cosmati/ops/error.h"

namespace cosmati::cli {

std::string shipped_generator() {
  namespace files = std::filesystem;
  constexpr char const* name = "share/cosmati/dcgan-fashion.safetensors";
  std::error_code ignored;
  auto const own = files::read_symlink("/proc/self/exe", ignored).parent_path();
  for (auto folder = own; folder.has_relative_path(); folder = folder.parent_path())
    if (files::exists(folder / name, ignored)) return (folder / name).string();
  throw Error(ErrorCode::bad_request,
              "generate dcgan has no --weights FILE (network.bin or .safetensors), "
              "and " +
                  std::string(name) + " was not found in " + own.string() + " or its parent folders");
}

}  // namespace cosmati::cli
