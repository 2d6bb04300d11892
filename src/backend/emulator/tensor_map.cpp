// What legal tensor maps are: CUDA driver API, cuTensorMapEncodeTiled.
#include "src/backend/emulator/tensor_map.h"

#include <algorithm>
#include <string>

#include "cosmati/ops/error.h"

namespace cosmati::emulator {
namespace {

constexpr unsigned long long mark = 0x636f736d'00000000;  // no CUtensorMap begins with it
constexpr int change_bit = 4;                             // of the byte that holds the swizzle
constexpr unsigned long long change_mask = 3ULL << change_bit;

[[noreturn]] void refuse(std::string const& text) {
  throw Error(ErrorCode::bad_request, "a tensor map " + text);
}

void check(TiledTensor const& tensor) {
  using std::to_string;
  if (tensor.rank < 1 || tensor.rank > 5) refuse("of rank " + to_string(tensor.rank) + "; legal are 1 to 5");
  int const size = tensor.element_bytes;
  if (size != 1 && size != 2 && size != 4 && size != 8)
    refuse("of elements of " + to_string(size) + " bytes; legal are 1, 2, 4 and 8");
  if (tensor.address == nullptr || (reinterpret_cast<std::uintptr_t>(tensor.address) & 15) != 0)
    refuse("of an array whose address is null or no multiple of 16 bytes");
  for (int i = 0; i < tensor.rank; ++i) {
    std::string const at = " of dimension " + to_string(i);
    if (tensor.extent[i] < 1 || tensor.extent[i] > 1LL << 32)
      refuse("with extent " + to_string(tensor.extent[i]) + at + "; legal are 1 to 2^32");
    if (i > 0 && (tensor.stride[i] <= 0 || tensor.stride[i] % 16 != 0 || tensor.stride[i] >= 1LL << 40))
      refuse("with a stride of " + to_string(tensor.stride[i]) + " bytes" + at +
             "; legal are multiples of 16 from 16 to 2^40 - 16");
    if (tensor.box[i] < 1 || tensor.box[i] > 256)
      refuse("with a box of " + to_string(tensor.box[i]) + " elements" + at + "; legal are 1 to 256");
  }
  int const row = tensor.box[0] * size, swizzle = tensor.swizzle_bytes;
  if (row % 16 != 0) refuse("with box rows of " + to_string(row) + " bytes; legal are multiples of 16");
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    refuse("with a swizzle of " + to_string(swizzle) + " bytes; legal are 0, 32, 64 and 128");
  if (swizzle != 0 && row != swizzle)
    refuse("with a swizzle of " + to_string(swizzle) + " bytes and box rows of " + to_string(row) +
           " bytes; both must be equal");
}

}  // namespace

// word 0: mark, rank, element size, change, swizzle; 1: address; 2 to 6: extents; 7 to 10: strides; 11 to 15:
// box.
arch::TensorMap encode_tensor_map(TiledTensor const& tensor) {
  check(tensor);
  arch::TensorMap map{};
  int const swizzle = tensor.swizzle_bytes == 0     ? 0
                      : tensor.swizzle_bytes == 128 ? 3
                                                    : tensor.swizzle_bytes / 32;
  map.word[0] = mark | static_cast<unsigned>(tensor.rank) << 16 |
                static_cast<unsigned>(tensor.element_bytes) << 8 | static_cast<unsigned>(swizzle);
  map.word[1] = reinterpret_cast<std::uintptr_t>(tensor.address);
  for (int i = 0; i < 5; ++i) {
    bool const exists = i < tensor.rank;
    map.word[2 + i] = exists ? static_cast<unsigned long long>(tensor.extent[i]) : 1;
    if (i > 0) map.word[6 + i] = exists ? static_cast<unsigned long long>(tensor.stride[i]) : 0;
    map.word[11 + i] = exists ? static_cast<unsigned long long>(tensor.box[i]) : 1;
  }
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
  std::int64_t const begin = coordinate[0];
  auto const within = [&](std::int64_t at) {
    return static_cast<int>(std::clamp<std::int64_t>(at - begin, 0, tiling.box[0]));
  };
  BoxRow result{nullptr, within(0), within(tiling.extent[0])};
  if (result.first >= result.last) return {};
  result.data = data + (begin + result.first) * tiling.element_bytes;
  return result;
}

}  // namespace cosmati::emulator
