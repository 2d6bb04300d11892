// Shared memory between guard regions. Guard bytes differ from the poison, so that poison copied beyond the
// end is detected too.
#include "src/backend/emulator/machine/shared_memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cosmati/ops/error.h"

namespace cosmati::emulator {
namespace {

constexpr int poison_byte = 0xff, guard_byte = 0xa5;
constexpr std::size_t alignment = 1024;
constexpr std::size_t nearby = 32;

bool is_guard(unsigned char const* bytes) {
  constexpr std::uint64_t pattern = 0xa5a5a5a5a5a5a5a5;
  std::uint64_t words[nearby / sizeof(std::uint64_t)];
  std::memcpy(words, bytes, sizeof words);
  std::uint64_t difference = 0;
  for (std::uint64_t const word : words) difference |= word ^ pattern;
  return difference == 0;
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : reservation_(nullptr), bytes_(bytes) {
  std::size_t const whole = guard + (bytes + alignment - 1) / alignment * alignment + guard;
  reservation_ = static_cast<unsigned char*>(std::aligned_alloc(alignment, whole));
  if (reservation_ == nullptr)
    throw Error(ErrorCode::out_of_memory, "the emulator cannot allocate " + std::to_string(bytes) +
                                              " bytes of shared memory for a block");
  std::memset(reservation_, guard_byte, guard);
  std::memset(data() + bytes_, guard_byte, guard);
}

SharedMemory::~SharedMemory() { std::free(reservation_); }

void SharedMemory::poison() { std::memset(data(), poison_byte, bytes_); }

bool SharedMemory::is_whole_nearby() const { return is_guard(data() - nearby) && is_guard(data() + bytes_); }

std::optional<std::ptrdiff_t> SharedMemory::damage() const {
  for (std::size_t i = 0; i < guard; i += nearby) {
    unsigned char const* const after = data() + bytes_ + i;
    unsigned char const* const before = data() - i - nearby;
    if (is_guard(after) && is_guard(before)) continue;
    for (std::size_t j = 0; j < nearby; ++j) {
      if (after[j] != guard_byte) return offset(after + j);
      if (before[nearby - 1 - j] != guard_byte) return offset(before + nearby - 1 - j);
    }
  }
  return {};
}

}  // namespace cosmati::emulator
