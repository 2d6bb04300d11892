// Runs tasks on several threads.
#include "src/jit/run_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace cosmati::jit {

void run_all(std::size_t count, int threads, std::function<void(std::size_t)> const& task) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next = 0;
  auto const work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::size_t const wanted =
      threads > 0 ? static_cast<std::size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(wanted, count); ++i) others.emplace_back(work);
    work();
  }
  for (std::exception_ptr const& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace cosmati::jit
