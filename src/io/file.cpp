// Reading, writing and mapping of files with POSIX calls.
#include "src/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>

#include "cosmati/ops/error.h"
#include "src/io/bad_file.h"
#include "src/io/write_all.h"

namespace cosmati::io {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void system_error(std::string const& path, char const* what) {
  throw Error(ErrorCode::system, fmt::format("{}: {}: {}", path, what, reason_of(errno)));
}

class Descriptor {
 public:
  Descriptor(std::string const& path, int flags, mode_t mode = 0)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;

  explicit operator bool() const { return value_ >= 0; }
  int get() const { return value_; }
  // Returns 0, or -1 with errno set: some file systems report write errors only here.
  int close() {
    int const closed = ::close(value_);
    value_ = -1;
    return closed;
  }

 private:
  int value_;
};

int flush(int descriptor) {
  int result = 0;
  do result = ::fsync(descriptor);
  while (result != 0 && errno == EINTR);
  return result;
}

// The file that a chain of symbolic links leads to, so that writing replaces the file and not the link;
// `path` if it is not a link.
std::string link_target(std::string const& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  std::filesystem::path const target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

// Makes a rename durable, which requires that the directory is on the disk too.
void flush_directory(std::string const& directory) {
  Descriptor const folder(directory, O_RDONLY | O_DIRECTORY);
  if (!folder) return;  // the directory is writable but not readable
  if (flush(folder.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    system_error(directory, "cannot flush");
}

// A file with an unused name in the target's directory, removed unless `keep` is called.
class TemporaryFile {
 public:
  TemporaryFile(std::string const& directory, std::string const& target, mode_t mode)
      : path_(unused_name(directory)), descriptor_(path_, O_WRONLY | O_CREAT | O_EXCL, mode) {
    if (!descriptor_) system_error(target, "cannot create a file in its folder");
    made_ = true;
  }
  ~TemporaryFile() {
    if (made_) ::unlink(path_.c_str());
  }
  TemporaryFile(TemporaryFile const&) = delete;
  TemporaryFile& operator=(TemporaryFile const&) = delete;

  std::string const& path() const { return path_; }
  Descriptor& descriptor() { return descriptor_; }
  void keep() { made_ = false; }

 private:
  static std::string unused_name(std::string const& directory) {
    std::random_device random;
    return fmt::format("{}/.cosmati-{:08x}{:08x}.tmp", directory, random(), random());
  }

  std::string path_;
  Descriptor descriptor_;
  bool made_ = false;
};

// Refuses to replace another user's file that is not writable, even if the permissions of its directory would
// allow it.
void check_replaceable(std::string const& path, std::string const& target, struct stat const& status) {
  if (status.st_uid == ::geteuid()) return;
  errno = EACCES;
  if ((status.st_mode & 0222) == 0 || ::access(target.c_str(), W_OK) != 0)
    system_error(path, "belongs to another user and cannot be replaced");
}

constexpr std::size_t longest_stream = std::size_t{256} << 20;  // bytes of a pipe or device
constexpr std::size_t largest_copy = std::size_t{256} << 20;    // bytes of a file that is read, not mapped

// Waits until the pipe has had a writer.
void await_writer(int descriptor, std::string const& path) {
  constexpr int milliseconds = 5000;
  pollfd waiting{descriptor, POLLIN, 0};
  int ready = 0;
  do ready = ::poll(&waiting, 1, milliseconds);
  while (ready < 0 && errno == EINTR);
  if (ready == 0)
    bad_file(path, fmt::format("is a pipe that no process opened for writing within {} seconds",
                               milliseconds / 1000));
}

void read_whole(int descriptor, std::span<std::byte> to, std::string const& path) {
  for (std::size_t done = 0; done < to.size();) {
    ssize_t const got = ::read(descriptor, to.data() + done, to.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad_file(path, "cannot be read: " + reason_of(errno));
    if (got == 0)
      bad_file(path,
               fmt::format("was truncated while it was read: {} of {} bytes are left", done, to.size()));
    done += static_cast<std::size_t>(got);
  }
}

void write_directly(std::string const& path, std::function<void(FileWriter&)> const& fill) {
  Descriptor const device(path, O_WRONLY);
  if (!device) system_error(path, "cannot open for writing");
  FileWriter writer(device.get(), path);
  fill(writer);
}

}  // namespace

std::string read_file(std::string const& path) {
  // O_NONBLOCK: opening a pipe without a writer would block.
  Descriptor const file(path, O_RDONLY | O_NONBLOCK);
  if (!file) bad_file(path, "cannot be opened: " + reason_of(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) bad_file(path, "cannot be examined: " + reason_of(errno));
  std::string contents;
  if (S_ISREG(status.st_mode)) contents.reserve(static_cast<std::size_t>(status.st_size));
  char buffer[65536];
  bool ended = !S_ISFIFO(status.st_mode);  // whether a read of 0 bytes means the end
  for (;;) {
    ssize_t const got = ::read(file.get(), buffer, sizeof buffer);
    if (got > 0) {
      contents.append(buffer, static_cast<std::size_t>(got));
      ended = true;
      if (contents.size() > longest_stream && !S_ISREG(status.st_mode))
        bad_file(path, fmt::format("has delivered {} bytes without ending; only regular files may be larger",
                                   contents.size()));
    } else if (got == 0) {
      if (ended) return contents;
      await_writer(file.get(), path);
      ended = true;
    } else if (errno == EAGAIN) {  // a writer exists but has not written yet
      pollfd waiting{file.get(), POLLIN, 0};
      ::poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      bad_file(path, "cannot be read: " + reason_of(errno));
    }
  }
}

MappedFile::MappedFile(std::string const& path) {
  Descriptor const file(path,
                        O_RDONLY | O_NONBLOCK);  // a pipe must not block here; it is rejected below
  if (!file) bad_file(path, "cannot be opened: " + reason_of(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) bad_file(path, "cannot be examined: " + reason_of(errno));
  if (S_ISDIR(status.st_mode)) bad_file(path, "is a folder, not a file");
  if (!S_ISREG(status.st_mode))
    bad_file(path, "is a pipe or a device, not a regular file; save its output to a file and pass that file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  bool const copied = size_ <= largest_copy;
  void* const address =
      copied ? ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
             : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED)
    bad_file(path, fmt::format("its {} bytes cannot be mapped: {}", size_, reason_of(errno)));
  data_ = static_cast<std::byte const*>(address);
  if (!copied) return;
  try {
    read_whole(file.get(), {static_cast<std::byte*>(address), size_}, path);
  } catch (...) {
    ::munmap(address, size_);
    throw;
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void FileWriter::write(void const* data, std::size_t bytes) {
  if (!write_all(descriptor_, data, bytes)) system_error(path_, "cannot be written");
}

void write_atomically(std::string const& path, std::function<void(FileWriter&)> const& fill) {
  std::string const target = link_target(path);
  struct stat status {};
  bool const exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    throw Error(ErrorCode::system, path + ": is a folder, and cannot be written as a file");
  if (exists && !S_ISREG(status.st_mode)) return write_directly(path, fill);
  if (exists) check_replaceable(path, target, status);

  std::string const parent = std::filesystem::path(target).parent_path().string();
  std::string const directory = parent.empty() ? "." : parent;
  TemporaryFile file(directory, path, 0666);
  if (exists) ::fchmod(file.descriptor().get(), status.st_mode & 0777);
  FileWriter writer(file.descriptor().get(), path);
  fill(writer);
  if (flush(file.descriptor().get()) != 0) system_error(path, "cannot be flushed to the disk");
  if (file.descriptor().close() != 0) system_error(path, "cannot be closed");
  if (::rename(file.path().c_str(), target.c_str()) != 0) system_error(path, "cannot be replaced");
  file.keep();
  flush_directory(directory);
}

void write_atomically(std::string const& path, std::string_view contents) {
  write_atomically(path, [&](FileWriter& writer) { writer.write(contents); });
}

void append_to_file(std::string const& path, std::string_view text) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (!file) system_error(path, "cannot open for appending");
  FileWriter(file.get(), path).write(text);
  if (file.close() != 0) system_error(path, "cannot be closed");
}

void append_line(std::string const& path, std::string const& line) {
  std::error_code error;
  char last = '\n';
  if (std::filesystem::is_regular_file(path, error)) {
    std::ifstream file(path, std::ios::binary);
    if (!file.seekg(-1, std::ios::end) || !file.get(last)) last = '\n';
  }
  append_to_file(path, last == '\n' ? line : '\n' + line);
}

void check_writable(std::string const& path) {
  std::string const target = link_target(path);
  struct stat status {};
  bool const exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    throw Error(ErrorCode::system, path + ": is a folder, and cannot be written as a file");
  if (exists && S_ISREG(status.st_mode)) check_replaceable(path, target, status);
  std::string const parent = std::filesystem::path(target).parent_path().string();
  std::string const place = exists && !S_ISREG(status.st_mode) ? target : parent.empty() ? "." : parent;
  if (::access(place.c_str(), W_OK) != 0) system_error(path, "cannot be written");
}

}  // namespace cosmati::io
