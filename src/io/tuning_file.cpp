// Reads tuning files, and adds lines under a lock.
#include "src/io/tuning_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cosmati/ops/error.h"
#include "src/io/bad_file.h"
#include "src/io/file.h"

namespace cosmati::io {
namespace {

[[noreturn]] void fail_tuning(std::string const& path, char const* what) {
  throw Error(ErrorCode::system, path + ": " + what + ": " + std::generic_category().message(errno));
}

// An exclusive lock on the file that `path` names, released by the destructor or at the end of the process.
class Lock {
 public:
  explicit Lock(std::string const& path) {
    // The previous holder of the lock may have replaced the file; then the lock is on a file without a name,
    // and is retried.
    while (!lock(path)) ::close(descriptor_);
  }
  ~Lock() { ::close(descriptor_); }
  Lock(Lock const&) = delete;
  Lock& operator=(Lock const&) = delete;

 private:
  bool lock(std::string const& path) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor_ < 0) fail_tuning(path, "cannot be opened for writing");
    struct stat mine {
    }, named{};
    if (::fstat(descriptor_, &mine) != 0 || !S_ISREG(mine.st_mode)) {
      ::close(descriptor_);
      bad_file(path, "is not a regular file");
    }
    while (::flock(descriptor_, LOCK_EX) != 0)
      if (errno != EINTR) {
        int const error = errno;
        ::close(descriptor_);
        errno = error;
        fail_tuning(path, "cannot be locked");
      }
    return ::stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
  }

  int descriptor_ = -1;
};

}  // namespace

TuningTable read_tuning(std::string const& path) { return TuningTable::parse(read_file(path), path); }

TuningTable tuning_to_add_to(std::string const& path) {
  struct stat status {};
  check_writable(path);
  if (::stat(path.c_str(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) bad_file(path, "is not a regular file");
  if (::access(path.c_str(), R_OK | W_OK) != 0) fail_tuning(path, "cannot be opened for writing");
  return read_tuning(path);
}

TuningTable add_to_tuning(std::string const& path, TuningTable const& lines) {
  Lock const lock(path);
  TuningTable table = read_tuning(path);
  table.add(lines);
  write_atomically(path, table.text());
  return table;
}

}  // namespace cosmati::io
