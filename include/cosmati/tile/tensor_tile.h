// A tile of an operand as written by TMA and read by wgmma: rows of at most 128 contiguous bytes, whose
// 16-byte chunks the hardware permutes so that eight rows at the same chunk are in different banks.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/arch/thread.h"
#include "cosmati/tile/tensor_box.h"

namespace cosmati {

template <class Element_, Along along_, int depth_, int outer_, int slices = 1>
struct TensorTile {
  using Element = Element_;
  static constexpr Along along = along_;
  static constexpr int depth = depth_, outer = outer_, element_bytes = static_cast<int>(sizeof(Element));
  static constexpr TensorBox box = tensor_box(along, element_bytes, depth, outer, slices);
  static constexpr int row_bytes = box.row * element_bytes, box_bytes = box.rows * row_bytes;
  static constexpr Swizzle swizzle = swizzle_of(row_bytes);
  static_assert(row_bytes >= 32, "a row of an operand's tile must have at least 32 bytes");
  static_assert(box.slice_rows % 8 == 0, "a slice of an operand's tile must be a multiple of eight rows");
  alignas(1024) unsigned char bytes[box.boxes][box.rows][row_bytes];

  // Loads slice `slice` of the tile through `boxes`, which contain its position: from global memory to the
  // same offset in the shared memory of each block in `blocks`, whose barriers count the bytes. Elements that
  // do not exist are zeros.
  template <class Boxes>
  COSMATI_DEVICE void copy(Boxes const& boxes, arch::Barrier& barrier, int slice, unsigned short blocks) {
    int const first_box = box.by_boxes ? slice * box.slice_boxes : 0;
    int const first_row = box.by_boxes ? 0 : slice * box.slice_rows;
    COSMATI_UNROLL
    for (int i = 0; i < box.slice_boxes; ++i)  // (row, slice_rows) elements per copy
      boxes.template copy<along, (slices > 1)>(bytes[first_box + i][first_row], barrier,
                                               (first_box + i) * box.row, first_row, blocks);
  }

  // Returns the descriptor of the operand for wgmma: the rows or columns of D starting at `first_outer`, and
  // the first 32 bytes of depth. In units of the descriptor's address, 16 bytes, pack p is at distance
  // pack_offset(p), and the next tile of an array at stride_of_tiles.
  COSMATI_DEVICE unsigned long long descriptor(int first_outer) const {
    constexpr MatrixStrides strides = strides_of_tile(box.rows, along == Along::mn, swizzle);
    return matrix_descriptor(arch::shared_address(&bytes[0][0][0]), strides, swizzle) +
           static_cast<unsigned>(outer_offset(first_outer));
  }
  COSMATI_CONSTEXPR static int outer_offset(int outer_index) {
    return (along == Along::k ? outer_index * row_bytes : outer_index / box.row * box_bytes) / 16;
  }
  COSMATI_CONSTEXPR static int pack_offset(int pack) {
    constexpr int packs_of_row = row_bytes / 32, pack_depth = 32 / element_bytes;
    if constexpr (along == Along::k)
      return (pack / packs_of_row * box_bytes + pack % packs_of_row * 32) / 16;
    else
      return pack * pack_depth * row_bytes / 16;
  }
  static constexpr int stride_of_tiles = box.boxes * box_bytes / 16;
};

// The tiles, of one box each, keep what shared memory contains from byte `first` on: rows that TMA does not
// write, if any. Only rows or columns outside D depend on them.
template <class Tile, int count>
COSMATI_DEVICE void permit_unwritten(Tile const (&tiles)[count], int first) {
  for (Tile const& tile : tiles)
    arch::permit_unwritten(&tile.bytes[0][0][0] + first, static_cast<int>(sizeof(Tile)) - first);
}

}  // namespace cosmati
