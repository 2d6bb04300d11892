// CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#include "src/program/tensor_map_limits.h"

#include <fmt/format.h>

#include <cstdint>

namespace cosmati::program {
namespace {

using fmt::format;

// The common requirements of both modes. `repeats`: the stride of the outermost dimension may be 0.
std::string array_violation(void const* address, int size, int rank, long long const* extent,
                            long long const* stride, bool repeats) {
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return format("of elements of {} bytes; valid values: 1, 2, 4 and 8", size);
  if (address == nullptr || (reinterpret_cast<std::uintptr_t>(address) & 15) != 0)
    return "of an array whose address is null or not a multiple of 16 bytes";
  for (int i = 0; i < rank; ++i) {
    if (extent[i] < 1 || extent[i] > 1LL << 32)
      return format("with extent {} of dimension {}; valid values: 1 to 2^32", extent[i], i);
    int const least = repeats && i == rank - 1 ? 0 : 16;
    if (i > 0 && (stride[i] < least || stride[i] % 16 != 0 || stride[i] >= 1LL << 40))
      return format(
          "with a stride of {} bytes of dimension {}; valid values: multiples of 16 from {} to 2^40 - 16",
          stride[i], i, least);
  }
  return {};
}

std::string row_violation(int row, int swizzle) {
  if (row % 16 != 0) return format("with box rows of {} bytes; expected multiples of 16", row);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return format("with a swizzle of {} bytes; valid values: 0, 32, 64 and 128", swizzle);
  if (swizzle != 0 && row != swizzle)
    return format("with a swizzle of {} bytes and box rows of {} bytes; both must be equal", swizzle, row);
  return {};
}

}  // namespace

std::string map_violation(emulator::TiledTensor const& tensor) {
  if (tensor.rank < 1 || tensor.rank > 5) return format("of rank {}; valid values: 1 to 5", tensor.rank);
  // Not stated by the source, but accepted: 0 reads the same elements again (driver 580.159, H200).
  bool const repeats = tensor.rank > 2;
  std::string sentence = array_violation(tensor.address, tensor.element_bytes, tensor.rank, tensor.extent,
                                         tensor.stride, repeats);
  if (!sentence.empty()) return sentence;
  for (int i = 0; i < tensor.rank; ++i)
    if (tensor.box[i] < 1 || tensor.box[i] > 256)
      return format("with a box of {} elements of dimension {}; valid values: 1 to 256", tensor.box[i], i);
  return row_violation(tensor.box[0] * tensor.element_bytes, tensor.swizzle_bytes);
}

std::string map_violation(emulator::WindowedTensor const& tensor) {
  std::string sentence =
      array_violation(tensor.address, tensor.element_bytes, 4, tensor.extent, tensor.stride, false);
  if (!sentence.empty()) return sentence;
  for (int i = 0; i < 2; ++i) {
    char const* const axis = i == 0 ? "columns" : "rows";
    for (int const corner : {tensor.lower[i], tensor.upper[i]})
      if (corner < -128 || corner > 127)
        return format("with a corner at {} of {}; valid values: -128 to 127", corner, axis);
    if (tensor.lower[i] > tensor.extent[1 + i] - 1 + tensor.upper[i])
      return format("whose corners leave no window of {}", axis);
    if (tensor.step[i] < 1 || tensor.step[i] > 8)
      return format("with a step of {} of {}; valid values: 1 to 8", tensor.step[i], axis);
  }
  if (tensor.channels < 1 || tensor.channels > 256)
    return format("with a box of {} channels; valid values: 1 to 256", tensor.channels);
  if (tensor.windows < 1 || tensor.windows > 1024)
    return format("with a box of {} windows; valid values: 1 to 1024", tensor.windows);
  return row_violation(tensor.channels * tensor.element_bytes, tensor.swizzle_bytes);
}

}  // namespace cosmati::program
