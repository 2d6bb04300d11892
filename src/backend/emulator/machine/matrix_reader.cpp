// Reads wgmma operands; tile/matrix_descriptor.h describes the layouts. The swizzle permutes chunks by bits
// of the full address.
#include "src/backend/emulator/machine/matrix_reader.h"

#include <fmt/format.h>

#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

std::string name_of_swizzle(Swizzle swizzle) {
  return swizzle == Swizzle::none ? "without swizzle"
                                  : fmt::format("with a swizzle of {} bytes", span_of(swizzle));
}

// Names the barrier of the box that is being copied to `offset`.
std::string barrier_of_box(Async const& async, std::ptrdiff_t offset) {
  for (TileLoad const& load : async.loads)
    if (offset >= load.to && offset < load.to + load.tiling.bytes())
      return fmt::format(" at the barrier at byte {}",
                         async.barriers[static_cast<std::size_t>(load.barrier)].offset);
  return {};
}

}  // namespace

MatrixReader::MatrixReader(unsigned long long descriptor, int outer, int element_bytes, bool along_outer)
    : descriptor_(decoded(descriptor)),
      outer_(outer),
      element_bytes_(element_bytes),
      along_outer_(along_outer) {}

std::ptrdiff_t MatrixReader::place(int line, int byte) const {
  int const offset = offset_by_strides(line, byte, descriptor_.strides, along_outer_, descriptor_.swizzle);
  return static_cast<std::ptrdiff_t>(
      swizzled(descriptor_.address + static_cast<unsigned>(offset), descriptor_.swizzle));
}

std::string MatrixReader::mistake_of_descriptor() const {
  int const span = span_of(descriptor_.swizzle), pattern = pattern_bytes(descriptor_.swizzle);
  int const start = static_cast<int>(descriptor_.address) % pattern;
  if (descriptor_.base_offset != 0)
    return fmt::format("has base offset {}; the emulator supports only 0", descriptor_.base_offset);
  if (descriptor_.swizzle == Swizzle::none) return {};
  // Measured, on an H100 if lines are values of k, on an H200 if they are rows or columns: products may start
  // at any line, and groups of 8 lines may be any number of lines apart, because the swizzle permutes by bits
  // of the address.
  if (descriptor_.strides.stride % span != 0)
    return fmt::format("has a stride of {} bytes, not a multiple of a line's {}", descriptor_.strides.stride,
                       span);
  if (!along_outer_ && start % span + 32 > span)
    return fmt::format("starts at byte {} of a line of {}; fewer than 32 bytes of depth follow", start % span,
                       span);
  if (along_outer_ && start % span != 0 && start % span + line_bytes() > span)
    return fmt::format("starts at byte {} of a line of {}; {} bytes do not fit", start % span, span,
                       line_bytes());
  return {};
}

std::string MatrixReader::mistake(Block const& block, OrdinaryWrites const& writes, char const* name) const {
  std::string const wrong = mistake_of_descriptor();
  if (!wrong.empty()) return fmt::format("the descriptor of {} {}", name, wrong);
  SharedMemory const& memory = block.shared_memory();
  for (int line = 0; line < lines(); ++line)
    for (int byte = 0; byte < line_bytes(); byte += chunk) {
      std::ptrdiff_t const at = place(line, byte);
      if (!memory.holds(memory.data() + at, chunk))
        return fmt::format("the descriptor of {} points to byte {} of the {} bytes of shared memory", name,
                           at, memory.size());
      if (auto const write = writes.unpublished(at, chunk))
        return fmt::format("{} holds {}", name, describe_unpublished(block, *write));
      if (writes.is_untouched(at))
        return fmt::format("{} holds byte {} of shared memory, to which nothing has been written or copied",
                           name, at);
      if (writes.is_on_its_way(at))
        return fmt::format(
            "{} holds byte {} of shared memory, to which a box is being copied; no thread waited for it{}",
            name, at, barrier_of_box(*block.async(), at));
      auto const swizzle = writes.swizzle_at(at);
      if (swizzle && *swizzle != descriptor_.swizzle)
        return fmt::format("{} at byte {} of shared memory is read {}, but was copied {}", name, at,
                           name_of_swizzle(descriptor_.swizzle), name_of_swizzle(*swizzle));
    }
  return {};
}

bool MatrixReader::meets(std::ptrdiff_t offset, int bytes) const {
  // A quick test that rejects nearly all queries: the swizzle stays within 1024 bytes.
  std::ptrdiff_t const begin = static_cast<std::ptrdiff_t>(descriptor_.address) & ~std::ptrdiff_t{1023};
  std::ptrdiff_t const last = static_cast<std::ptrdiff_t>(descriptor_.address) +
                              offset_by_strides(lines() - 1, line_bytes() - 1, descriptor_.strides,
                                                along_outer_, descriptor_.swizzle);
  if (offset + bytes <= begin || offset > (last | 1023)) return false;
  for (int line = 0; line < lines(); ++line)
    for (int byte = 0; byte < line_bytes(); byte += chunk) {
      std::ptrdiff_t const at = place(line, byte);
      if (at + chunk > offset && at < offset + bytes) return true;
    }
  return false;
}

void MatrixReader::read(SharedMemory const& memory, unsigned char* bytes, void const* caller) const {
  for (int line = 0; line < lines(); ++line)
    for (int byte = 0; byte < line_bytes(); byte += chunk) {
      unsigned char const* const from = memory.data() + place(line, byte);
      sanitizers::reads(from, chunk, caller);
      if (!along_outer_) {
        __builtin_memcpy(bytes + line * 32 + byte, from, chunk);
        continue;
      }
      for (int i = 0; i < chunk; i += element_bytes_)
        __builtin_memcpy(bytes + (byte + i) / element_bytes_ * 32 + line * element_bytes_, from + i, 2);
    }
}

}  // namespace cosmati::emulator
