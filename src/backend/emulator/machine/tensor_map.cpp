// Validates and encodes tensor maps: CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#include "src/backend/emulator/machine/tensor_map.h"

#include <algorithm>
#include <string>

#include "cosmati/ops/error.h"
#include "src/program/tensor_map_limits.h"

namespace cosmati::emulator {
namespace {

constexpr unsigned long long mark = 0x636f736d'00000000;  // no CUtensorMap begins with this
constexpr int change_bit = 4;                             // in the byte that holds the swizzle
constexpr unsigned long long change_mask = 3ULL << change_bit;

using std::to_string;

void check(auto const& tensor) {
  if (std::string const sentence = program::map_violation(tensor); !sentence.empty())
    throw Error(ErrorCode::bad_request, "a tensor map " + sentence);
}

constexpr unsigned long long windowed_bit = 1ULL << 6;  // in the byte that holds the swizzle

unsigned long long head(int rank, int element_bytes, int swizzle_bytes) {
  int const swizzle = swizzle_bytes == 0 ? 0 : swizzle_bytes == 128 ? 3 : swizzle_bytes / 32;
  return mark | static_cast<unsigned>(rank) << 16 | static_cast<unsigned>(element_bytes) << 8 |
         static_cast<unsigned>(swizzle);
}

// Packs two integers into a word; unpack() reverses it.
unsigned long long packed(int const (&pair)[2]) {
  return static_cast<unsigned long long>(static_cast<unsigned>(pair[0])) << 32 |
         static_cast<unsigned>(pair[1]);
}
void unpack(unsigned long long word, int (&pair)[2]) {
  pair[0] = static_cast<int>(static_cast<unsigned>(word >> 32));
  pair[1] = static_cast<int>(static_cast<unsigned>(word));
}

// The number of windows along axis i, from the lower to the upper corner.
std::int64_t windows_of(Tiling const& tiling, int i) {
  return (tiling.extent[1 + i] - 1 + tiling.upper[i] - tiling.lower[i]) / tiling.step[i] + 1;
}

// The elements of a box row that lie inside the array; `data` is the address of element 0 of the array's row.
BoxRow existing(Tiling const& tiling, std::int64_t begin, unsigned char* data) {
  auto const within = [&](std::int64_t at) {
    return static_cast<int>(std::clamp<std::int64_t>(at - begin, 0, tiling.box[0]));
  };
  BoxRow result{nullptr, within(0), within(tiling.extent[0])};
  if (result.first >= result.last) return {};
  result.data = data + (begin + result.first) * tiling.element_bytes;
  return result;
}

}  // namespace

// Word 0: mark, rank, element size, mode, change bit, swizzle. Word 1: address. Words 2 to 6: extents. Words
// 7 to 10: strides. Words 11 to 15: the box or, in im2col mode, channels and windows of a box, corners and
// steps.
arch::TensorMap encode_tensor_map(TiledTensor const& tensor) {
  check(tensor);
  arch::TensorMap map{};
  map.word[0] = head(tensor.rank, tensor.element_bytes, tensor.swizzle_bytes);
  map.word[1] = reinterpret_cast<std::uintptr_t>(tensor.address);
  for (int i = 0; i < 5; ++i) {
    bool const exists = i < tensor.rank;
    map.word[2 + i] = exists ? static_cast<unsigned long long>(tensor.extent[i]) : 1;
    if (i > 0) map.word[6 + i] = exists ? static_cast<unsigned long long>(tensor.stride[i]) : 0;
    map.word[11 + i] = exists ? static_cast<unsigned long long>(tensor.box[i]) : 1;
  }
  return map;
}

arch::TensorMap encode_tensor_map(WindowedTensor const& tensor) {
  check(tensor);
  arch::TensorMap map{};
  map.word[0] = head(4, tensor.element_bytes, tensor.swizzle_bytes) | windowed_bit;
  map.word[1] = reinterpret_cast<std::uintptr_t>(tensor.address);
  for (int i = 0; i < 5; ++i) {
    map.word[2 + i] = i < 4 ? static_cast<unsigned long long>(tensor.extent[i]) : 1;
    if (i > 0) map.word[6 + i] = i < 4 ? static_cast<unsigned long long>(tensor.stride[i]) : 0;
  }
  map.word[11] = static_cast<unsigned long long>(tensor.channels);
  map.word[12] = static_cast<unsigned long long>(tensor.windows);
  map.word[13] = packed(tensor.lower);
  map.word[14] = packed(tensor.upper);
  map.word[15] = packed(tensor.step);
  return map;
}

bool is_tensor_map(arch::TensorMap const& map) { return (map.word[0] & ~0xffffffULL) == mark; }

Tiling tiling_of(arch::TensorMap const& map) {
  Tiling tiling{};
  tiling.rank = static_cast<int>(map.word[0] >> 16 & 0xff);
  tiling.element_bytes = static_cast<int>(map.word[0] >> 8 & 0xff);
  tiling.swizzle = static_cast<Swizzle>(map.word[0] & 0xf);
  tiling.address = reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(map.word[1]));
  for (int i = 0; i < 5; ++i) {
    tiling.extent[i] = static_cast<std::int64_t>(map.word[2 + i]);
    tiling.stride[i] = i == 0 ? tiling.element_bytes : static_cast<std::int64_t>(map.word[6 + i]);
    tiling.box[i] = static_cast<int>(map.word[11 + i]);
  }
  tiling.windowed = (map.word[0] & windowed_bit) != 0;
  if (!tiling.windowed) return tiling;
  for (int i = 2; i < 5; ++i) tiling.box[i] = 1;
  unpack(map.word[13], tiling.lower);
  unpack(map.word[14], tiling.upper);
  unpack(map.word[15], tiling.step);
  return tiling;
}

MapChange change_of(arch::TensorMap const& map) {
  return static_cast<MapChange>((map.word[0] & change_mask) >> change_bit);
}

void change_address(arch::TensorMap& map, void* address) {
  map.word[1] = reinterpret_cast<std::uintptr_t>(address);
  map.word[0] = (map.word[0] & ~change_mask) | static_cast<unsigned long long>(MapChange::made) << change_bit;
}

void mark_released(arch::TensorMap& map) {
  map.word[0] = (map.word[0] & ~change_mask) | static_cast<unsigned long long>(MapChange::released)
                                                   << change_bit;
}

BoxRow row_of_box(Tiling const& tiling, int const* coordinate, int row) {
  unsigned char* data = tiling.address;
  for (int i = 1; i < tiling.rank; ++i) {
    std::int64_t const at = std::int64_t{coordinate[i]} + row % tiling.box[i];
    row /= tiling.box[i];
    if (at < 0 || at >= tiling.extent[i]) return {};
    data += at * tiling.stride[i];
  }
  return existing(tiling, coordinate[0], data);
}

BoxRow row_of_windows(Tiling const& tiling, int const* coordinate, int const* offset, int row) {
  std::int64_t const across = windows_of(tiling, 0), down = windows_of(tiling, 1);
  std::int64_t const column = (coordinate[1] - tiling.lower[0]) / tiling.step[0] + row;
  std::int64_t const line = (coordinate[2] - tiling.lower[1]) / tiling.step[1] + column / across;
  std::int64_t const at[3] = {tiling.lower[0] + column % across * tiling.step[0] + offset[0],
                              tiling.lower[1] + line % down * tiling.step[1] + offset[1],
                              coordinate[3] + line / down};
  unsigned char* data = tiling.address;
  for (int i = 0; i < 3; ++i) {
    if (at[i] < 0 || at[i] >= tiling.extent[1 + i]) return {};
    data += at[i] * tiling.stride[1 + i];
  }
  return existing(tiling, coordinate[0], data);
}

std::string mistake_of_windows(Tiling const& tiling, int const* coordinate, int const* offset) {
  for (int i = 0; i < 2; ++i) {
    std::string const of = i == 0 ? "column" : "row";
    std::int64_t const at = coordinate[1 + i], first = tiling.lower[i],
                       last = tiling.extent[1 + i] - 1 + tiling.upper[i];
    if (at < first || at > last || (at - first) % tiling.step[i] != 0)
      return "whose first corner is at " + of + " " + to_string(at) + "; the map's are at " +
             to_string(first) + " to " + to_string(last) + " by " + to_string(tiling.step[i]);
    if (offset[i] < 0 || offset[i] > 255)
      return "with an offset of " + to_string(offset[i]) + " from the corner's " + of +
             "; valid values: 0 to 255";
  }
  return {};
}

}  // namespace cosmati::emulator
