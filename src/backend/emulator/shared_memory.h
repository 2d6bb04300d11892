// The shared memory of one block: 1024-byte aligned, poisoned at start, between two zones of guard bytes.
#pragma once
#include <cstddef>
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

  // The position of an address, counted from data().
  std::ptrdiff_t offset(void const* address) const;
  // Whether the address lies between the outer ends of the guards.
  bool reserves(void const* address) const;
  // Whether [address, address + bytes) lies in the memory.
  bool holds(void const* address, int bytes) const;

  // Whether the guard bytes next to the memory are whole: cheap enough for after each turn of a thread.
  bool is_whole_nearby() const;
  // The offset of the damaged guard byte that is nearest to the memory.
  std::optional<std::ptrdiff_t> damage() const;

 private:
  static constexpr std::size_t guard = 4096;
  unsigned char* reservation_;
  std::size_t bytes_;
};

}  // namespace cosmati::emulator
