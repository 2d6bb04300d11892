// Which bytes of shared memory were written by ordinary stores whose thread has not said so since to what
// reads them asynchronously (fence.proxy.async). Nobody tells the emulator of a store: what a thread's turn
// has changed is found by comparing memory with a copy of it, in pieces of 16 bytes. Lines of 128 bytes that
// the copy engine wrote last are compared at fences and asynchronous reads only, where the writer is not
// known.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cosmati/tile/matrix_descriptor.h"
#include "src/backend/emulator/machine/shared_memory.h"

namespace cosmati::emulator {

class OrdinaryWrites {
 public:
  static constexpr int threads_of_block = 1024;  // of block `rank` of the cluster: rank * that + thread
  static constexpr int unknown = 0xfffd, copies = 0xfffe;  // writers beside threads; copies: cp.async

  explicit OrdinaryWrites(SharedMemory const& memory);
  // Takes memory for poisoned, as it is when a block starts.
  void reset();
  // What has changed since the last call was written by `writer`.
  void attribute(int writer);
  // The fence of `writer`: of its own stores, of those of nobody known, and of cp.async.
  void publish(int writer);
  // [offset, offset + bytes), whole lines but for the end of memory, is a box that the copy engine wrote, or
  // is about to write.
  void take(std::ptrdiff_t offset, int bytes, Swizzle swizzle, bool on_its_way);

  struct Write {
    std::ptrdiff_t offset;
    int writer;
  };
  // A write to [offset, offset + bytes), multiples of 16, of which the asynchronous world does not know.
  std::optional<Write> unpublished(std::ptrdiff_t offset, int bytes) const;
  // With which swizzle the copy engine wrote the line at `offset`, if it did and nobody has written since.
  std::optional<Swizzle> swizzle_at(std::ptrdiff_t offset) const;
  bool is_on_its_way(std::ptrdiff_t offset) const;  // a box to the line at `offset`
  // Nobody has written the line at `offset`. A thread may have written what was there before: it must also
  // publish that, so after the first fence nothing is said.
  bool is_untouched(std::ptrdiff_t offset) const;

 private:
  static constexpr std::size_t line = 128;
  static constexpr unsigned char ordinary = 0xff, untouched = 0xfe;  // else a Swizzle ...
  static constexpr unsigned char on_its_way = 0x80;                  // ... with this bit or without it
  bool is_of_box(std::size_t index) const { return lines_[index] < untouched; }
  bool differs(std::size_t index) const;
  void copy(std::size_t index);

  SharedMemory const& memory_;
  std::vector<unsigned char> copy_;
  std::vector<std::uint16_t> writer_;      // of each byte, plus 1; 0: all is known
  std::vector<unsigned char> lines_;       // who wrote each
  std::vector<unsigned char> is_pending_;  // whether a byte of the line has a writer
  bool anybody_published_ = false;
};

}  // namespace cosmati::emulator
