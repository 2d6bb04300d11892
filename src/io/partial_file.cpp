// Files that grow under a temporary name: appending, flushing and renaming by system calls.
#include "src/io/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "cosmati/ops/error.h"
#include "src/io/file.h"
#include "src/io/write_all.h"

namespace cosmati::io {
namespace {

constexpr std::size_t line_bytes = 160;  // of a ProgressFile, padded with spaces: a single write replaces it

[[noreturn]] void fail(std::string const& path, char const* what) {
  throw Error(ErrorCode::system, path + ": " + what + ": " + std::strerror(errno));
}

// Opens a file of this user for reading and writing. Refuses anything else with that name, which might be
// overwritten or block: a symbolic link, a pipe, another user's file.
int open_own(std::string const& path, struct stat& status, int create = O_CREAT) {
  int const descriptor = ::open(path.c_str(), O_RDWR | create | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == ELOOP)
    throw Error(ErrorCode::system, path + ": is a symbolic link, which is not followed here; remove it");
  if (descriptor < 0) fail(path, "cannot open for writing");
  char const* wrong = nullptr;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    wrong = "is not a regular file";
  else if (status.st_uid != ::geteuid())
    wrong = "belongs to another user";
  else if (status.st_nlink > 1)
    wrong = "has more than one hard link";
  if (wrong == nullptr) return descriptor;
  ::close(descriptor);
  throw Error(ErrorCode::system, path + ": " + wrong + ", and was left unchanged; remove it to continue");
}

}  // namespace

PartialFile::PartialFile(std::string path, unsigned long long keep)
    : path_(std::move(path)), partial_(path_ + ".partial") {
  struct stat status {};
  bool const exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    throw Error(ErrorCode::system, path_ + ": is a folder, and cannot be written as a file");
  direct_ = exists && !S_ISREG(status.st_mode);
  if (direct_) {
    partial_ = path_;
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(partial_, "cannot open for writing");
    return;
  }
  check_writable(path_);
  descriptor_ = open_own(partial_, status);
  writer_ = std::make_unique<PlacedWriter>(descriptor_);
  if (static_cast<unsigned long long>(status.st_size) < keep) {
    close();
    throw Error(ErrorCode::system, partial_ + ": holds " + std::to_string(status.st_size) + " bytes of the " +
                                       std::to_string(keep) +
                                       " that an earlier run wrote; remove it to start over");
  }
  if (keep == 0 && ::ftruncate(descriptor_, 0) != 0) {
    close();
    fail(partial_, "cannot be truncated");
  }
}

std::unique_ptr<PartialFile> PartialFile::join(std::string path) {
  std::unique_ptr<PartialFile> file(new PartialFile);
  file->path_ = std::move(path);
  file->partial_ = file->path_ + ".partial";
  try {
    struct stat status {};
    file->descriptor_ = open_own(file->partial_, status, 0);
  } catch (Error const&) {
    return nullptr;
  }
  file->writer_ = std::make_unique<PlacedWriter>(file->descriptor_);
  return file;
}

PartialFile::~PartialFile() { close(); }

void PartialFile::close() {
  writer_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void PartialFile::write(unsigned long long at, void const* data, std::size_t bytes) {
  if (!(direct_ ? write_all(descriptor_, data, bytes) : writer_->write(at, data, bytes)))
    fail(partial_, "cannot be written");
}

void PartialFile::write_rows(unsigned long long at, std::size_t stride, std::size_t rows, void const* data,
                             std::size_t row_bytes) {
  if (!writer_->write_rows(at, stride, rows, data, row_bytes)) fail(partial_, "cannot be written");
}

std::string PartialFile::read(unsigned long long at, std::size_t bytes) const {
  std::string result(bytes, '\0');
  ssize_t const got = ::pread(descriptor_, result.data(), bytes, static_cast<off_t>(at));
  result.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return result;
}

void PartialFile::flush() {
  if (!direct_ && ::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS)
    fail(partial_, "cannot be flushed to the disk");
}

void PartialFile::finish(unsigned long long bytes) {
  struct stat replaced {};
  if (!direct_ && ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    fail(partial_, "cannot be truncated");
  if (!direct_ && ::stat(path_.c_str(), &replaced) == 0) ::fchmod(descriptor_, replaced.st_mode & 0777);
  flush();
  if (!direct_ && ::rename(partial_.c_str(), path_.c_str()) != 0) fail(path_, "cannot be replaced");
}

void PartialFile::discard() {
  close();
  if (!direct_) ::unlink(partial_.c_str());
}

ProgressFile::ProgressFile(std::string path) : path_(std::move(path)) {
  struct stat mine {
  }, named{};
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = open_own(path_, mine);
    // If the file system has no locks, the user must make sure that there is only one run at a time.
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw Error(ErrorCode::unavailable, path_ + ": another process is writing these files");
    }
    // The previous holder of the lock may have removed the file; then the locked file is no longer the one
    // that the name refers to.
  } while (::lstat(path_.c_str(), &named) != 0 || mine.st_ino != named.st_ino || mine.st_dev != named.st_dev);
}

ProgressFile::~ProgressFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string ProgressFile::read() const {
  char line[line_bytes];
  ssize_t const got = ::pread(descriptor_, line, sizeof line, 0);
  if (got <= 0) return {};
  std::string text(line, static_cast<std::size_t>(got));
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

void ProgressFile::write(std::string const& line) {
  std::string whole = line;
  whole.resize(line_bytes - 1, ' ');
  whole += '\n';
  if (::lseek(descriptor_, 0, SEEK_SET) != 0 || !write_all(descriptor_, whole.data(), whole.size()))
    fail(path_, "cannot be written");
}

void ProgressFile::remove() { ::unlink(path_.c_str()); }

}  // namespace cosmati::io
