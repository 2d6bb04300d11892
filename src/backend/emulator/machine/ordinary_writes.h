// Tracks the bytes of shared memory that were written by ordinary stores without a subsequent
// fence.proxy.async of their thread. The emulator does not see stores: it finds the changes during a thread's
// turn by comparing memory with a copy, in pieces of 16 bytes. Lines of 128 bytes last written by TMA are
// compared only at fences and asynchronous reads, where the writer is unknown.
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
  // Thread t of block `rank` of the cluster is writer rank * this + t.
  static constexpr int threads_of_block = 1024;
  static constexpr int unknown = 0xfffd, copies = 0xfffe;  // other writers; copies: cp.async

  explicit OrdinaryWrites(SharedMemory const& memory);
  // Resets to poisoned memory, the state at the start of a block.
  void reset();
  // Attributes the changes since the last call to `writer`.
  void attribute(int writer);
  // The fence of `writer`: publishes its own stores, those of unknown writers, and those of cp.async.
  void publish(int writer);
  // Marks [offset, offset + bytes) as a box that TMA has written or will write. Lines of which it is only a
  // part, other than the last one of memory, count as ordinary, without a writer.
  void take(std::ptrdiff_t offset, int bytes, Swizzle swizzle, bool on_its_way);

  // Permits reads of the lines in [offset, offset + bytes) that have not been written.
  void permit(std::ptrdiff_t offset, int bytes);

  struct Write {
    std::ptrdiff_t offset;
    int writer;
  };
  // Returns an unpublished write to [offset, offset + bytes), multiples of 16.
  std::optional<Write> unpublished(std::ptrdiff_t offset, int bytes) const;
  // Returns the swizzle with which TMA wrote the line at `offset`, if it did and no thread has written it
  // since.
  std::optional<Swizzle> swizzle_at(std::ptrdiff_t offset) const;
  bool is_on_its_way(std::ptrdiff_t offset) const;  // a box is being loaded to the line at `offset`
  // The line at `offset` has not been written. A thread may have written its previous contents, which it must
  // also publish; therefore nothing is reported after the first fence.
  bool is_untouched(std::ptrdiff_t offset) const;

 private:
  static constexpr std::size_t line = 128;
  static constexpr unsigned char ordinary = 0xff, untouched = 0xfe;  // otherwise a Swizzle,
  static constexpr unsigned char on_its_way = 0x80;                  // with or without this bit
  bool is_of_box(std::size_t index) const { return lines_[index] < untouched; }
  bool differs(std::size_t index) const;
  void copy(std::size_t index);

  SharedMemory const& memory_;
  std::vector<unsigned char> copy_;
  std::vector<std::uint16_t> writer_;      // of each byte, plus 1; 0: published
  std::vector<unsigned char> lines_;       // the kind of write of each
  std::vector<unsigned char> is_pending_;  // whether a byte of the line has an unpublished write
  bool anybody_published_ = false;
};

}  // namespace cosmati::emulator
