// PTX ISA, "wmma": checks the memory that a warp loads a fragment from or stores one to.
#include "cosmati/arch/emulator_wmma.h"

#include <fmt/format.h>

#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/report.h"

namespace cosmati::emulator {
namespace {

constexpr int stride_unit = 16;  // bytes: CUDA's programming guide, "load_matrix_sync"

std::string mistake_of(WmmaMatrix const& matrix, SharedMemory const& memory) {
  auto const at = memory.offset(matrix.address);
  if (!memory.reserves(matrix.address)) return "of a matrix that is not in shared memory";
  if (at % matrix.alignment != 0)
    return fmt::format("of a matrix at byte {} of shared memory, not a multiple of {}", at, matrix.alignment);
  if (matrix.stride_bytes % stride_unit != 0)
    return fmt::format("with a leading dimension of {} bytes, not a multiple of {}; nearest: {}",
                       matrix.stride_bytes, stride_unit,
                       (matrix.stride_bytes + stride_unit - 1) / stride_unit * stride_unit);
  if (matrix.stride_bytes < matrix.line_bytes)
    return fmt::format("with a leading dimension of {} bytes, less than the {} of a line",
                       matrix.stride_bytes, matrix.line_bytes);
  int const bytes = (matrix.lines - 1) * matrix.stride_bytes + matrix.line_bytes;
  if (!memory.holds(matrix.address, bytes))
    return fmt::format("of bytes {} to {} of shared memory, which has {}", at, at + bytes - 1, memory.size());
  return {};
}

}  // namespace

void check_wmma_matrix(WmmaMatrix const& matrix) {
  Thread& thread = running_thread();
  std::string const mistake = mistake_of(matrix, thread.block.shared_memory());
  if (!mistake.empty()) thread.block.fail(thread, fmt::format("{} {}", matrix.name, mistake));
}

void check_wmma_lane(WmmaMatrix const& matrix, int lane, void const* address) {
  if (address == matrix.address) return;
  Thread& thread = running_thread();
  SharedMemory const& memory = thread.block.shared_memory();
  thread.block.fail(
      thread, fmt::format("{} of a matrix at byte {} of shared memory, where lane {} has one at byte {}",
                          matrix.name, memory.offset(matrix.address), lane, memory.offset(address)));
}

}  // namespace cosmati::emulator
