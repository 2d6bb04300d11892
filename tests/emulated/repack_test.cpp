// Operands repacked for TMA: every element size, width and direction, partial tiles, gaps, batches by stride
// and by pointers; nothing is written outside the pitch.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "cosmati/gemm/repack.h"

namespace cosmati::emulated {
namespace {

struct Case {
  Index rows, columns, batch;
  Index gap;          // elements between the end of a row and the next
  Index column_step;  // 1: contiguous
};

template <int element_bytes, int width, bool transposed>
void expect_repacked(Case const& c, bool by_pointers) {
  using Bits = typename BitsOf<element_bytes>::type;
  using Tile = RepackTile<element_bytes, transposed>;
  constexpr Index unit = 16 / element_bytes;
  auto const up = [](Index n, Index to) { return (n + to - 1) / to * to; };
  Index const row_stride = up(c.columns * c.column_step, width) + up(c.gap, width);
  Index const offset = width == 1 ? 1 : width;  // as misaligned as the width allows
  std::vector<Bits> from(static_cast<std::size_t>(up(row_stride * c.rows, 16) * c.batch + offset + 16));
  std::mt19937 random(7);
  for (Bits& bits : from) bits = static_cast<Bits>(random());

  Index const lines = transposed ? c.columns : c.rows, line = transposed ? c.rows : c.columns;
  Index const pitch = up(line, unit), matrix_pitch = pitch * lines + unit;
  std::vector<unsigned> to(static_cast<std::size_t>(matrix_pitch * c.batch * element_bytes / 4), 0xabababab);

  std::vector<void*> pointers;
  Index const matrix_stride = up(row_stride * c.rows, 16);
  for (Index b = 0; b < c.batch; ++b) pointers.push_back(from.data() + offset + b * matrix_stride);
  RepackParameters params;
  params.from.data = from.data() + offset;
  params.from.pointers = by_pointers ? pointers.data() : nullptr;
  params.from.row_stride = row_stride;
  params.from.column_stride = c.column_step;
  params.from.batch_stride = by_pointers ? 0 : matrix_stride;
  params.to = to.data();
  params.rows = c.rows, params.columns = c.columns;
  params.pitch = pitch, params.matrix_pitch = matrix_pitch;
  auto const tiles = [](Index extent, int tile) { return static_cast<int>((extent + tile - 1) / tile); };
  using Shared = typename Repack<element_bytes, width, transposed>::SharedStorage;
  emulator::launch_kernel<&repack_kernel<element_bytes, width, transposed>>(
      {tiles(c.rows, Tile::rows) * tiles(c.columns, Tile::columns), 1, static_cast<int>(c.batch)},
      Tile::threads, sizeof(Shared), params);

  auto const* const result = reinterpret_cast<Bits const*>(to.data());
  int wrong = 0;
  for (Index b = 0; b < c.batch; ++b) {
    for (Index i = 0; i < lines; ++i)
      for (Index j = 0; j < line; ++j) {
        Index const row = transposed ? j : i, column = transposed ? i : j;
        Bits const expected = from[static_cast<std::size_t>(offset + b * matrix_stride + row * row_stride +
                                                            column * c.column_step)];
        wrong += result[b * matrix_pitch + i * pitch + j] != expected;
      }
    for (Index i = 0; i < unit; ++i)
      wrong += result[b * matrix_pitch + lines * pitch + i] != static_cast<Bits>(0xabababab);
  }
  EXPECT_EQ(wrong, 0) << c.rows << 'x' << c.columns << 'x' << c.batch << ", " << element_bytes
                      << " bytes, width " << width;
}

template <int element_bytes, int width>
void expect_both() {
  for (Case const& c : {Case{1, 1, 1, 0, 1}, {64, 128, 1, 0, 1}, {33, 67, 2, 5, 1}, {130, 31, 1, 1, 1}})
    for (bool by_pointers : {false, true}) {
      expect_repacked<element_bytes, width, false>(c, by_pointers);
      expect_repacked<element_bytes, width, true>(c, by_pointers);
    }
}

TEST(Repack, KeepsAndTransposes) {
  expect_both<1, 1>();
  expect_both<1, 4>();
  expect_both<1, 16>();
  expect_both<2, 1>();
  expect_both<2, 2>();
  expect_both<2, 8>();
  expect_both<4, 1>();
  expect_both<4, 4>();
}

TEST(Repack, AcceptsNonContiguousColumns) {
  expect_repacked<2, 1, false>({19, 40, 1, 3, 3}, false);
  expect_repacked<1, 1, true>({19, 40, 1, 3, 2}, false);
}

}  // namespace
}  // namespace cosmati::emulated
