// Repeats write calls until all bytes are written.
#include "src/io/write_all.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace cosmati::io {
namespace {

// Blocks SIGXFSZ for the current thread during its lifetime, and discards one that a write has raised. The
// rest of the process is not affected.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() {
    sigset_t pending;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigpending(&pending);
    waiting_before_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutSizeSignal() {
    int const error = errno;
    constexpr timespec at_once{0, 0};
    if (exceeded_ && !waiting_before_)
      while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSizeSignal(WithoutSizeSignal const&) = delete;
  WithoutSizeSignal& operator=(WithoutSizeSignal const&) = delete;

  void exceeded() { exceeded_ = true; }

 private:
  sigset_t signal_, before_;
  bool waiting_before_ = false, exceeded_ = false;
};

// Calls call(next, bytes), which may write only some of the bytes, until all are written.
template <class Call>
bool write_by(Call const& call, void const* data, std::size_t bytes) {
  WithoutSizeSignal guard;
  auto const* next = static_cast<char const*>(data);
  while (bytes > 0) {
    ssize_t const written = call(next, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EFBIG) guard.exceeded();
      return false;
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

bool write_all(int descriptor, void const* data, std::size_t bytes) {
  return write_by([=](char const* next, std::size_t left) { return ::write(descriptor, next, left); }, data,
                  bytes);
}

bool write_all_at(int descriptor, unsigned long long at, void const* data, std::size_t bytes) {
  auto const* const begin = static_cast<char const*>(data);
  return write_by(
      [=](char const* next, std::size_t left) {
        return ::pwrite(descriptor, next, left,
                        static_cast<off_t>(at + static_cast<unsigned long long>(next - begin)));
      },
      data, bytes);
}

}  // namespace cosmati::io
