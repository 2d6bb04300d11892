// Loops over host threads, on the OpenMP runtime that oneDNN also uses, because two thread pools in one
// process would compete for cores. A process may fork between such loops: parent and child continue with
// their own threads. If the system refuses threads, fewer threads share the parts.
#pragma once
#include <memory>
#include <type_traits>

#include "cosmati/core/config.h"

namespace cosmati::cpu {

// Calls body(context, part, parts) for each part in [0, parts), each on its own thread, and returns when all
// have completed. Rethrows the exception of the lowest part that threw.
void run_parts(int parts, void (*body)(void* context, int part, int parts), void* context);

// Calls body(part, parts) for each part, like run_parts.
template <class Body>
void parallel_parts(int parts, Body&& body) {
  if (parts <= 1) {
    body(0, 1);
    return;
  }
  using Function = std::remove_reference_t<Body>;
  run_parts(
      parts, [](void* context, int part, int count) { (*static_cast<Function*>(context))(part, count); },
      const_cast<void*>(static_cast<void const*>(std::addressof(body))));
}

// Returns the share [first, last) of [0, count) for `part`, in multiples of `grain` except for the last.
struct Range {
  Index first, last;
};
constexpr Range share(Index count, int part, int parts, Index grain = 1) {
  Index const grains = (count + grain - 1) / grain;
  auto const at = [=](Index p) {
    Index const element = grains * p / parts * grain;
    return element < count ? element : count;
  };
  return {at(part), at(part + 1)};
}

// Returns how many of `wanted` threads, including the caller, the system lets this process have at a time.
int threads_to_be_had(int wanted);

// Sets the number of threads of OpenMP regions that this thread starts, and restores the previous number.
// Throws Error(system) if the system does not provide them: a primitive that oneDNN prepared for one number
// of threads computes wrong results with fewer.
class ThreadCount {
 public:
  explicit ThreadCount(int threads);
  ~ThreadCount();
  ThreadCount(ThreadCount const&) = delete;
  ThreadCount& operator=(ThreadCount const&) = delete;

 private:
  int before_ = 1;
};

}  // namespace cosmati::cpu
