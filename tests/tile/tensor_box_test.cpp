// The boxes in which TMA loads the tile of an operand.
#include "cosmati/tile/tensor_box.h"

#include <gtest/gtest.h>

namespace cosmati {
namespace {

// The elements of a row, and the boxes, of a tile of 16-bit elements with 64 of depth.
struct Boxes {
  int row, boxes;
  bool operator==(Boxes const&) const = default;
};
constexpr Boxes boxes_of(int columns) {
  TensorBox const box = tensor_box(Along::mn, 2, 64, columns, 1);
  return {box.row, box.boxes};
}

// Rows of 64 or 128 bytes that divide the tile; otherwise full rows, the last of which ends beyond it.
static_assert(boxes_of(256) == Boxes{64, 4} && boxes_of(96) == Boxes{32, 3} && boxes_of(32) == Boxes{32, 1});
static_assert(boxes_of(208) == Boxes{64, 4} && boxes_of(144) == Boxes{64, 3} && boxes_of(80) == Boxes{64, 2});
// A single row is no longer than needed for a swizzle.
static_assert(boxes_of(48) == Boxes{64, 1} && boxes_of(24) == Boxes{32, 1} && boxes_of(16) == Boxes{16, 1});

TEST(TensorBox, HoldsTheTileAndLessThanABoxMore) {
  for (int const bytes : {2, 4, 8})
    for (int columns = 128 / bytes; columns <= 256; columns += 16 / bytes) {
      TensorBox const box = tensor_box(Along::mn, bytes, 32, columns, 1);
      int const held = bytes_of_boxes(box, bytes), needed = 32 * columns * bytes;
      EXPECT_GE(held, needed) << columns;
      EXPECT_LT(held, needed + 32 * 128) << columns;
      EXPECT_GE(box.row * bytes, 64) << columns;
    }
}

// Along k, boxes never end beyond a step.
TEST(TensorBox, DividesAStepAlongK) {
  for (int const depth : {16, 32, 64}) {
    TensorBox const box = tensor_box(Along::k, 2, depth, 208, 1);
    EXPECT_EQ(box.boxes, 1);
    EXPECT_EQ(bytes_of_boxes(box, 2), depth * 208 * 2);
  }
}

// Slices of a cluster are boxes if their number divides those of the tile, otherwise rows of each.
TEST(TensorBox, ClustersShareBoxesOrTheirRows) {
  TensorBox const even = tensor_box(Along::mn, 2, 64, 208, 2), odd = tensor_box(Along::mn, 2, 64, 144, 2);
  EXPECT_TRUE(even.by_boxes);
  EXPECT_EQ(even.slice_boxes, 2);
  EXPECT_FALSE(odd.by_boxes);
  EXPECT_EQ(odd.slice_rows, 32);
}

}  // namespace
}  // namespace cosmati
