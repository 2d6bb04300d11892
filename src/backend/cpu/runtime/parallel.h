// Loops over host threads, on the OpenMP runtime that oneDNN also uses, because two thread pools in one
// process would compete for cores. A process may fork between such loops: parent and child continue with
// their own threads. If the system refuses threads, fewer threads share the parts.
#pragma once
#include <memory>
#include <type_traits>

#include "cosmati/core/config.h"

namespace cosmati::cpu {

// Calls body(context, part, parts) for each part in [0, parts), each on a thread of its own; returns when all
// have. Rethrows what the lowest of the parts that threw has thrown.
void run_parts(int parts, void (*body)(void* context, int part, int parts), void* context);

// body(part, parts) for each part, as run_parts.
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

// The share of [0, count) that falls to `part`: [first, last), in multiples of `grain` but for the last.
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

// As many of `wanted` threads as the system lets this process have at a time, the caller included.
int threads_to_be_had(int wanted);

// Sets the number of threads of OpenMP regions that this thread starts, and puts the old number back. Throws
// Error(system) where so many are not to be had: what oneDNN prepared for some is wrong with fewer.
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
