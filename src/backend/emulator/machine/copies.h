// The asynchronous copies (cp.async) of one emulated thread: they land when it waits for them, no earlier.
#pragma once
#include <cstdint>
#include <vector>

namespace cosmati::emulator {

class Copies {
 public:
  // Poisons the destination; the source is read when the copy lands. `caller` is where the kernel does this.
  void issue(unsigned char* to, unsigned char const* from, int bytes, int valid, void const* caller);
  void commit() { ++committed_; }
  // Lets the committed groups land, in order, all but the latest `in_flight`.
  void land(int in_flight, void const* caller);
  // How many were issued so far, and letting the first so many of them land.
  std::int64_t issued() const { return forgotten_ + static_cast<std::int64_t>(copies_.size()); }
  void land_first(std::int64_t count, void const* caller);
  // What was never waited for lands when the block is done, also what is in no group.
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

  std::vector<Copy> copies_;  // in the order of their issue
  std::size_t landed_ = 0;
  std::int64_t committed_ = 0;  // groups
  std::int64_t forgotten_ = 0;  // copies that have landed and are no longer in the list
};

}  // namespace cosmati::emulator
