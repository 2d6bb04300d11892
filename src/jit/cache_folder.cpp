// The folder of the kernel cache, accessed by POSIX calls.
#include "src/jit/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati::jit {
namespace {

constexpr long long largest_entry = 1LL << 30;  // bytes; larger files are not cache entries
constexpr std::time_t touch_interval = 60;      // seconds
constexpr std::time_t longest_write = 3600;     // seconds; the writer of an older temporary file is gone

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

std::string environment(char const* name) {
  char const* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Reads with read() instead of mmap(), so that a concurrent truncation of the file cannot crash this program.
// Returns an empty vector on failure.
std::vector<std::byte> read_regular(int descriptor, long long size) {
  std::vector<std::byte> contents(static_cast<std::size_t>(size));
  std::size_t got = 0;
  while (got < contents.size()) {
    ssize_t const part = ::read(descriptor, contents.data() + got, contents.size() - got);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) return {};
    got += static_cast<std::size_t>(part);
  }
  return contents;
}

// Returns why a file or folder is not trusted: machine code is accepted only from this user and root. Empty
// if it is trusted.
std::string distrust(struct stat const& status) {
  uid_t const user = ::geteuid();
  if (status.st_uid != user && status.st_uid != 0)
    return fmt::format("it belongs to user {}, not to user {} or root", status.st_uid, user);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("others may write to it (mode {:04o}; run chmod go-w)", status.st_mode & 07777);
  return {};
}

// True for the temporary names that src/io/file.cpp creates.
bool is_temporary_name(std::string_view name) {
  return name.starts_with(".cosmati-") && name.ends_with(".tmp");
}

struct File {
  std::string name;
  long long bytes;
  timespec used;
};

bool used_before(File const& a, File const& b) {
  return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

// Lists the regular files directly in `folder` whose names `wanted` accepts.
std::vector<File> list(std::string const& folder, bool (*wanted)(std::string_view)) {
  std::vector<File> files;
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) return files;
  while (dirent const* item = ::readdir(directory)) {
    struct stat status {};
    if (!wanted(item->d_name)) continue;
    if (::fstatat(::dirfd(directory), item->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode))
      files.push_back({item->d_name, status.st_size, status.st_mtim});
  }
  ::closedir(directory);
  return files;
}

long long bytes_of(std::vector<File> const& files) {
  long long bytes = 0;
  for (File const& file : files) bytes += file.bytes;
  return bytes;
}

// Failure is ignored: another process may have removed the file first.
void remove(std::string const& folder, std::string const& name) { ::unlink((folder + "/" + name).c_str()); }

}  // namespace

std::string cache_folder(std::string const& chosen) {
  if (!chosen.empty()) return chosen;
  if (std::string const own = environment("COSMATI_CACHE"); !own.empty()) return own;
  // The XDG specification requires relative paths to be ignored.
  if (std::string const all = environment("XDG_CACHE_HOME"); all.starts_with('/')) return all + "/cosmati";
  if (std::string const home = environment("HOME"); !home.empty()) return home + "/.cache/cosmati";
  return {};
}

CacheStatistics cache_statistics(std::string const& folder) {
  std::vector<File> const files = list(folder, is_entry_name);
  return {static_cast<long long>(files.size()), bytes_of(files)};
}

std::optional<Cubin> load_entry(std::string const& folder, std::string_view key, bool touch,
                                std::string& refusal) {
  struct stat status {};
  Descriptor const place(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place || ::fstat(place.get(), &status) != 0) return std::nullopt;
  if (std::string const reason = distrust(status); !reason.empty()) {
    refusal = fmt::format("{} is ignored: {}", folder, reason);
    return std::nullopt;
  }
  std::string const name = entry_name(key);
  // O_NONBLOCK: a pipe with this name would block.
  Descriptor const file(::openat(place.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > largest_entry)
    return std::nullopt;
  if (std::string const reason = distrust(status); !reason.empty()) {
    refusal = fmt::format("{}/{} is ignored: {}", folder, name, reason);
    return std::nullopt;
  }
  std::optional<Entry> entry = parse_entry(read_regular(file.get(), status.st_size));
  if (!entry || entry->key != key) return std::nullopt;
  // Fails for entries that are readable but not owned, which are then only evicted earlier.
  if (touch && std::time(nullptr) - status.st_mtime > touch_interval) ::futimens(file.get(), nullptr);
  return std::move(entry->cubin);
}

void store_entry(std::string const& folder, std::string_view name, std::string_view file) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
    // Regardless of the umask, no other user may write to the folder: see distrust().
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
      throw Error(ErrorCode::system,
                  fmt::format("{}: cannot be created: {}", folder, std::generic_category().message(errno)));
  }
  std::string const path = fmt::format("{}/{}", folder, name);
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0)
    if (!distrust(status).empty()) return;  // load_entry() has reported it
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw Error(ErrorCode::system, path + ": is not a regular file, and was left unchanged");
  io::write_atomically(path, file);
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    ::chmod(path.c_str(), status.st_mode & 0755);
}

long long trim(std::string const& folder, long long max_bytes, std::string_view keep) {
  // The lock is on the folder itself, and is released when its holder exits. Without lock support, two
  // processes may remove the same files, which is harmless.
  Descriptor const lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool const busy = lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  std::vector<File> entries = list(folder, is_entry_name);
  long long bytes = bytes_of(entries);
  if (busy) return bytes;

  for (File const& file : list(folder, is_temporary_name))
    if (std::time(nullptr) - file.used.tv_sec > longest_write) remove(folder, file.name);
  if (bytes <= max_bytes) return bytes;
  std::sort(entries.begin(), entries.end(), used_before);
  for (File const& file : entries) {
    if (bytes <= max_bytes - max_bytes / 10) break;
    if (file.name == keep) continue;
    remove(folder, file.name);
    bytes -= file.bytes;
  }
  return bytes;
}

}  // namespace cosmati::jit
