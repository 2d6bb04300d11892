// The emulator's encoding of a tensor map, and the enumeration of the rows of a box.
#pragma once
#include <cstdint>
#include <string>

#include "cosmati/arch/tensor_copy.h"
#include "cosmati/tile/matrix_descriptor.h"

namespace cosmati::emulator {

struct Tiling {
  unsigned char* address;
  int rank, element_bytes;
  std::int64_t extent[5], stride[5];  // stride in bytes, of dimension 0 too
  int box[5];
  Swizzle swizzle;
  bool windowed;  // im2col: boxes are (channels, windows), corners as in WindowedTensor
  int lower[2], upper[2], step[2];

  int row_bytes() const { return box[0] * element_bytes; }
  int rows() const { return box[1] * box[2] * box[3] * box[4]; }
  int bytes() const { return rows() * row_bytes(); }
};

bool is_tensor_map(arch::TensorMap const& map);
Tiling tiling_of(arch::TensorMap const& map);  // extents and boxes of missing dimensions are 1

// How a kernel has modified a map: replaced its address, and whether the thread has released it.
enum class MapChange : unsigned char { none, made, released };
MapChange change_of(arch::TensorMap const& map);
void change_address(arch::TensorMap& map, void* address);
void mark_released(arch::TensorMap& map);

// A row of a box: its elements [first, last) exist, the first one at `data`.
struct BoxRow {
  unsigned char* data = nullptr;
  int first = 0, last = 0;
};
BoxRow row_of_box(Tiling const& tiling, int const* coordinate, int row);
// Window `row` of a box in im2col mode, read at `offset` (right, down) from its corner.
BoxRow row_of_windows(Tiling const& tiling, int const* coordinate, int const* offset, int row);
// Describes an error in the corner or the offset of such a box; empty if there is none.
std::string mistake_of_windows(Tiling const& tiling, int const* coordinate, int const* offset);

}  // namespace cosmati::emulator
