// Queries this machine.
#include "cli/machine.h"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cosmati/ops/device.h"
#include "src/backend/cuda/driver/driver.h"
#include "src/jit/cache_folder.h"
#include "src/jit/nvrtc.h"

namespace cosmati::cli {
namespace {

namespace files = std::filesystem;

constexpr char const* library_folders[] = {"/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib64",
                                           "/usr/lib",
                                           "/usr/local/lib",
                                           "/usr/local/cuda/lib64",
                                           "/usr/lib/x86_64-linux-gnu/openblas-pthread"};

std::string first_line(files::path const& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpuinfo(std::string const& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) {
      auto const colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return {};
}

std::string environment(char const* name) {
  char const* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string find_program(std::string const& name) {
  std::istringstream folders(environment("PATH") + ":/usr/local/cuda/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code ignored;
    auto const path = files::path(folder) / name;
    if (!folder.empty() && files::is_regular_file(path, ignored)) return path.string();
  }
  return {};
}

Found library(std::string const& name, std::vector<std::string> const& file_names) {
  std::string const path = find_library(file_names);
  return {name, path.empty() ? "not found: " + file_names.front() : path, !path.empty()};
}

Found cuda_driver() {
  std::string const& failure = cuda::driver_failure();
  return {"CUDA driver", failure.empty() ? "CUDA " + cuda::driver_version() : failure, failure.empty()};
}

}  // namespace

std::string find_library(std::vector<std::string> const& names) {
  std::vector<std::string> folders(std::begin(library_folders), std::end(library_folders));
  std::istringstream more(environment("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(more, folder, ':');)
    if (!folder.empty()) folders.insert(folders.begin(), folder);
  for (std::string const& name : names)
    for (std::string const& folder : folders) {
      std::error_code ignored;
      auto const path = files::path(folder) / name;
      if (files::exists(path, ignored)) return files::canonical(path, ignored).string();
    }
  return {};
}

std::string processor_model() { return cpuinfo("model name"); }

std::vector<Found> peers() {
  return {library("onednn", {"libdnnl.so.2", "libdnnl.so.3"}), library("openblas", {"libopenblas.so.0"}),
          library("cublaslt", {"libcublasLt.so.13", "libcublasLt.so.12"}),
          library("cudnn", {"libcudnn.so.9"})};
}

std::vector<Found> toolkit() {
  std::string const nvcc = find_program("nvcc");
  return {{"nvcc", nvcc.empty() ? "not found" : nvcc, !nvcc.empty()},
          {"NVRTC", jit::nvrtc_description(), jit::nvrtc_available()},
          cuda_driver()};
}

Cache kernel_cache() {
  std::string const folder = jit::cache_folder();
  jit::CacheStatistics const contents = jit::cache_statistics(folder);
  return {folder, contents.bytes, contents.files};
}

std::string gpu_driver() {
  // "NVRM version: NVIDIA UNIX ... Kernel Module  580.159.04  Release Build ..."
  std::istringstream words(first_line("/proc/driver/nvidia/version"));
  std::string version = "CUDA " + cuda::driver_version();
  for (std::string word; words >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos)
      return version + ", " + word;
  return version;
}

std::string commit() {
  if (std::string const told = environment("COSMATI_COMMIT"); !told.empty()) return told;
  std::error_code ignored;
  for (auto folder = files::read_symlink("/proc/self/exe", ignored).parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    std::string const head = first_line(folder / ".git" / "HEAD");
    if (head.empty()) continue;
    if (!head.starts_with("ref: ")) return head;
    std::string const branch = head.substr(5);
    if (std::string const hash = first_line(folder / ".git" / branch); !hash.empty()) return hash;
    std::ifstream packed(folder / ".git" / "packed-refs");
    for (std::string line; std::getline(packed, line);)
      if (line.ends_with(' ' + branch)) return line.substr(0, line.find(' '));
    break;
  }
  return "unknown";
}

std::string version_text() {
  std::string const built_from = commit();
  return "cosmati " COSMATI_VERSION + (built_from == "unknown" ? "" : ", " + built_from.substr(0, 12));
}

std::string time_now() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  gmtime_r(&now, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

}  // namespace cosmati::cli
