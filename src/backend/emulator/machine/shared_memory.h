// The shared memory of one block: 1024-byte aligned, poisoned at start, between two zones of guard bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

namespace cosmati::emulator {

class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory const&) = delete;
  SharedMemory& operator=(SharedMemory const&) = delete;

  unsigned char* data() const { return reservation_ + guard; }
  std::size_t size() const { return bytes_; }
  void poison();

  // Inline, since every access of every emulated thread calls it.
  // Returns the offset of an address from data().
  std::ptrdiff_t offset(void const* address) const {
    return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(address) -
                                       reinterpret_cast<std::uintptr_t>(data()));
  }
  // Whether the address is between the outer ends of the guards.
  bool reserves(void const* address) const {
    return static_cast<std::size_t>(offset(address)) + guard < bytes_ + 2 * guard;
  }
  // Whether [address, address + bytes) is in the memory.
  bool holds(void const* address, int bytes) const {
    std::ptrdiff_t const at = offset(address);
    return at >= 0 && at + bytes <= static_cast<std::ptrdiff_t>(bytes_);
  }

  // Whether the guard bytes next to the memory are intact; cheap enough to check after each turn of a thread.
  bool is_whole_nearby() const;
  // Returns the offset of the damaged guard byte nearest to the memory.
  std::optional<std::ptrdiff_t> damage() const;

 private:
  static constexpr std::size_t guard = 4096;
  unsigned char* reservation_;
  std::size_t bytes_;
};

}  // namespace cosmati::emulator
