// The asynchronous copies (cp.async) of one emulated thread: they take effect when it waits for them, not
// before.
#pragma once
#include <cstdint>
#include <vector>

namespace cosmati::emulator {

class Copies {
 public:
  // Poisons the destination; the source is read when the copy takes effect. `caller` is the location in the
  // kernel.
  void issue(unsigned char* to, unsigned char const* from, int bytes, int valid, void const* caller);
  void commit() { ++committed_; }
  // Completes the committed groups, in order, except the latest `in_flight`.
  void land(int in_flight, void const* caller);
  // issued() returns the number of copies so far; land_first() completes the first `count` of them.
  std::int64_t issued() const { return forgotten_ + static_cast<std::int64_t>(copies_.size()); }
  void land_first(std::int64_t count, void const* caller);
  // Completes copies that were never waited for, at the end of the block, including those in no group.
  void land_all();

 private:
  struct Copy {
    unsigned char* to;
    unsigned char const* from;
    int bytes, valid;
    std::int64_t group;
    void const* caller;
  };
  void land_groups_before(std::int64_t group, void const* caller);
  void land_next(void const* caller);
  void forget_landed();

  std::vector<Copy> copies_;  // in order of issue
  std::size_t landed_ = 0;
  std::int64_t committed_ = 0;  // groups
  std::int64_t forgotten_ = 0;  // completed copies that are no longer in the list
};

}  // namespace cosmati::emulator
