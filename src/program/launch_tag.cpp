// Launch tags: a counter with an arbitrary start, passed through a bijection (the finalizer of SplitMix64,
// Steele, Lea and Flood 2014).
#include "src/program/launch_tag.h"

#include <atomic>
#include <random>

namespace cosmati {
namespace {

unsigned long long start() {
  std::random_device device;
  return static_cast<unsigned long long>(device()) << 32 | device();
}

}  // namespace

unsigned long long fresh_launch_tag() {
  static std::atomic<unsigned long long> counter{start()};
  unsigned long long tag = 0;
  while (tag == 0) {
    tag = counter.fetch_add(0x9e3779b97f4a7c15ULL, std::memory_order_relaxed);
    tag = (tag ^ tag >> 30) * 0xbf58476d1ce4e5b9ULL;
    tag = (tag ^ tag >> 27) * 0x94d049bb133111ebULL;
    tag ^= tag >> 31;
  }
  return tag;
}

}  // namespace cosmati
