// Operands repacked for TMA: every element size, width and direction, partial tiles, gaps, batches by stride
// and by pointers; nothing is written outside the pitch. Operands split into bf16 pieces: the pieces of
// difficult numbers, the derived error of their products, and the layout of the segments.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cosmati/gemm/operands/row_copy.h"
#include "cosmati/gemm/repack.h"
#include "cosmati/ops/compute_mode.h"

namespace cosmati::emulated {
namespace {

struct Case {
  Index rows, columns, batch;
  Index gap;          // elements between the end of a row and the next
  Index column_step;  // 1: contiguous
};

template <int element_bytes, int width, bool transposed, bool by_rows = false>
void expect_repacked(Case const& c, bool by_pointers) {
  using Bits = typename BitsOf<element_bytes>::type;
  constexpr RepackPolicy policy{.element_bytes = element_bytes, .width = width, .transposed = transposed};
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
  using Shared = typename Repack<policy>::SharedStorage;
  int const batch = static_cast<int>(c.batch);
  if constexpr (by_rows)
    emulator::launch_kernel<&row_copy_kernel<RowCopyTraits<Bits>>>(
        {static_cast<int>(RowCopyBlock::blocks(c.rows, pitch, element_bytes)), 1, batch},
        RowCopyBlock::threads, 0, params);
  else
    emulator::launch_kernel<&repack_kernel<policy>>(
        {tiles(c.rows, policy.rows()) * tiles(c.columns, policy.columns()), 1, batch}, policy.threads,
        sizeof(Shared), params);

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

// Rows that begin at any element, in one block and in several, longer and shorter than a unit.
TEST(Repack, CopiesRows) {
  for (Case const& c : {Case{1, 1, 1, 0, 1},
                        {64, 128, 1, 0, 1},
                        {33, 67, 2, 5, 1},
                        {130, 31, 1, 1, 1},
                        {900, 17, 1, 0, 1},
                        {5, 9001, 1, 3, 1},
                        {19, 40, 1, 3, 3}})
    for (bool by_pointers : {false, true}) {
      expect_repacked<1, 1, false, true>(c, by_pointers);
      expect_repacked<2, 1, false, true>(c, by_pointers);
    }
}

TEST(Repack, AcceptsNonContiguousColumns) {
  expect_repacked<2, 1, false>({19, 40, 1, 3, 3}, false);
  expect_repacked<1, 1, true>({19, 40, 1, 3, 2}, false);
}

using Bf16Pieces = FactorPieces<2>;
using Tf32Pieces = FactorPieces<4>;

template <int bytes>
double value(unsigned piece) {
  return FactorPieces<bytes>::widen(piece);
}
template <int bytes>
double sum(FactorPieces<bytes> const& x) {
  return value<bytes>(x.p0) + value<bytes>(x.p1) + value<bytes>(x.p2);
}

// Bits that are spread over all exponents, so that every mantissa and remainder occurs.
float number(std::mt19937& random, int low, int high) {
  float const mantissa = 1 + static_cast<float>(random() >> 9) * 0x1p-23f;
  return std::ldexp(random() % 2 == 0 ? mantissa : -mantissa,
                    std::uniform_int_distribution<int>(low, high)(random));
}

TEST(FactorPieces, AddUpToTheFactor) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    float const x = number(random, -110, 127);
    Bf16Pieces const pieces(x);
    ASSERT_EQ(sum(pieces), x);
    ASSERT_EQ(pieces.finite, pieces.p0);
    ASSERT_LE(std::fabs(value<2>(pieces.p1)), 0x1.02p-8 * std::fabs(x)) << x;
    ASSERT_LE(std::fabs(value<2>(pieces.p2)), 0x1.02p-16 * std::fabs(x)) << x;
    Tf32Pieces const two(x);
    ASSERT_LE(std::fabs(sum(two) - x), 0x1p-23 * std::fabs(x)) << x;
    ASSERT_EQ(two.finite, two.p0);
    ASSERT_EQ((two.p0 | two.p1) & 0x1fffu, 0u) << "tensor cores ignore these bits";
    ASSERT_LE(std::fabs(value<4>(two.p1)), 0x1p-11 * std::fabs(x)) << x;
  }
  for (int i = 0; i < 200000; ++i) {  // below, to within half of the smallest bf16 or tf32
    float const x = number(random, -149, -111);
    ASSERT_LE(std::fabs(sum(Bf16Pieces(x)) - x), 0x1p-134) << x;
    ASSERT_LE(std::fabs(sum(Tf32Pieces(x)) - x), 0x1p-134) << x;
    ASSERT_NE(value<2>(Bf16Pieces(x).p0), 0) << "times infinity it would be NaN";
    ASSERT_NE(value<4>(Tf32Pieces(x).p0), 0) << "times infinity it would be NaN";
  }
}

TEST(FactorPieces, OfTheLargestNumbersAreFinite) {
  float const largest = std::numeric_limits<float>::max();
  for (float x = largest; x > 0x1.fcp+127f; x = std::nextafter(x, 0.0f) * (1 - 0x1p-16f))
    for (float const signed_x : {x, -x}) {
      Bf16Pieces const pieces(signed_x);
      ASSERT_TRUE(std::isfinite(value<2>(pieces.p0)));
      ASSERT_EQ(sum(pieces), signed_x);
      Tf32Pieces const two(signed_x);
      ASSERT_TRUE(std::isfinite(value<4>(two.p0)));
      ASSERT_LE(std::fabs(sum(two) - signed_x), 0x1p-22 * x);
    }
}

template <int bytes>
void expect_non_finite_only_in_the_first() {
  for (float const x : {INFINITY, -INFINITY, NAN, -NAN}) {
    FactorPieces<bytes> const pieces(x);
    EXPECT_TRUE(std::isnan(x) ? std::isnan(value<bytes>(pieces.p0)) : value<bytes>(pieces.p0) == x);
    EXPECT_EQ(pieces.p1, 0u);
    EXPECT_EQ(pieces.p2, 0u);
    EXPECT_EQ(pieces.finite, 0u);
  }
  EXPECT_EQ(FactorPieces<bytes>(0.0f).p0, 0u);
  EXPECT_EQ(FactorPieces<bytes>(-0.0f).p0, bytes == 2 ? 0x8000u : 0x80000000u);
}

TEST(FactorPieces, OfNonFiniteNumbersAreOnlyInTheFirst) {
  expect_non_finite_only_in_the_first<2>();
  expect_non_finite_only_in_the_first<4>();
}

// x * y as the sum of a mode's pairs of pieces, except pair `left_out`.
template <int bytes>
double product(ComputeMode mode, float x, float y, int left_out) {
  FactorPieces<bytes> const a(x), b(y);
  double result = 0;
  for (int pair = 0; pair < products_of(mode); ++pair) {
    auto const [of_a, of_b] = piece_pair(products_of(mode), pair);
    if (pair != left_out) result += value<bytes>(a.get(of_a)) * value<bytes>(b.get(of_b));
  }
  return result;
}
double product_of(ComputeMode mode, float x, float y, int left_out = -1) {
  return mode == ComputeMode::tf32x3 ? product<4>(mode, x, y, left_out) : product<2>(mode, x, y, left_out);
}

// The largest relative error of a product that omits pair `left_out`.
double largest_error(ComputeMode mode, int left_out) {
  std::mt19937 random(2);
  double largest = 0;
  for (int i = 0; i < 100000; ++i) {
    float const x = number(random, -1, 1), y = number(random, -1, 1);
    double const exact = static_cast<double>(x) * y;
    largest = std::max(largest, std::fabs(product_of(mode, x, y, left_out) - exact) / std::fabs(exact));
  }
  return largest;
}

TEST(FactorPieces, ProductsKeepTheStatedErrorAndNoneCanBeLeftOut) {
  for (ComputeMode const mode : {ComputeMode::bf16x3, ComputeMode::bf16x6, ComputeMode::tf32x3}) {
    double const stated = largest_product_error(mode);
    EXPECT_LE(largest_error(mode, -1), stated) << name_of(mode);
    EXPECT_GE(largest_error(mode, -1), 0.3 * stated) << name_of(mode);
    for (int pair = 0; pair < products_of(mode); ++pair)
      EXPECT_GT(largest_error(mode, pair), 5 * stated) << name_of(mode) << ' ' << pair;
  }
  EXPECT_LE(largest_error(ComputeMode::bf16x9, -1), 0x1p-50);  // the rounding error of double in this test
  for (int pair = 0; pair < 9; ++pair) EXPECT_GT(largest_error(ComputeMode::bf16x9, pair), 0x1p-35);
}

TEST(FactorPieces, ProductsHaveTheStatedDeviation) {
  std::mt19937 random(3);
  for (ComputeMode const mode : {ComputeMode::bf16x3, ComputeMode::bf16x6, ComputeMode::tf32x3}) {
    double errors = 0;
    int const count = 100000;
    for (int i = 0; i < count; ++i) {  // mantissas that are distributed logarithmically
      std::uniform_real_distribution<float> exponent(0, 1);
      float const x = std::exp2(exponent(random)), y = std::exp2(exponent(random));
      errors += std::pow(product_of(mode, x, y) / (static_cast<double>(x) * y) - 1, 2);
    }
    EXPECT_NEAR(std::sqrt(errors / count) / expected_product_error(mode), 1, 0.05) << name_of(mode);
  }
}

struct SplitCase {
  Index outer, depth, batch, gap;
};

template <int products, int bytes, bool is_b, int width, bool transposed>
void expect_segments(SplitCase const& c) {
  constexpr PiecesPolicy policy{
      .products = products, .piece_bytes = bytes, .is_b = is_b, .width = width, .transposed = transposed};
  using Bits = typename SplitOperand<policy>::Bits;
  auto const up = [](Index n, Index to) { return (n + to - 1) / to * to; };
  Index const line = transposed ? c.outer : c.depth, lines = transposed ? c.depth : c.outer;
  Index const stride = up(line + c.gap, width), matrix = stride * lines;
  std::vector<float> from(static_cast<std::size_t>(matrix * c.batch + 8), NAN);
  float* const first = from.data() + (width == 1 ? 1 : 0);
  std::mt19937 random(4);
  for (Index b = 0; b < c.batch; ++b)
    for (Index i = 0; i < lines; ++i)
      for (Index j = 0; j < line; ++j) first[b * matrix + i * stride + j] = number(random, -20, 20);

  PieceParameters params;
  params.from.data = first;
  params.from.row_stride = transposed ? 1 : stride;
  params.from.column_stride = transposed ? stride : 1;
  params.from.batch_stride = matrix;
  params.outer = c.outer, params.depth = c.depth;
  params.segment = up(c.depth, PieceTile::run);
  params.pitch = products * params.segment;
  params.matrix_pitch = params.pitch * c.outer;
  std::vector<Bits> to(static_cast<std::size_t>(params.matrix_pitch * c.batch + 8), 0xabab);
  params.to = to.data();
  auto const tiles = [](Index extent, int tile) { return static_cast<int>((extent + tile - 1) / tile); };
  using Shared = typename SplitOperand<policy>::SharedStorage;
  emulator::launch_kernel<&pieces_kernel<policy>>(
      {tiles(c.outer, PieceTile::outer) * tiles(params.segment, PieceTile::depth), 1,
       static_cast<int>(c.batch)},
      PieceTile::threads, sizeof(Shared), params);

  int wrong = 0;
  for (Index b = 0; b < c.batch; ++b)
    for (Index i = 0; i < c.outer; ++i)
      for (int s = 0; s < products; ++s)
        for (Index k = 0; k < params.segment; ++k) {
          PiecePair const pair = piece_pair(products, s);
          float const x =
              k < c.depth ? first[b * matrix + (transposed ? k * stride + i : i * stride + k)] : 0;
          unsigned const expected = FactorPieces<bytes>(x).get(is_b ? pair.b : pair.a);
          wrong += to[static_cast<std::size_t>(b * params.matrix_pitch + i * params.pitch +
                                               s * params.segment + k)] != expected;
        }
  for (std::size_t i = 0; i < 8; ++i) wrong += to[to.size() - 1 - i] != 0xabab;
  EXPECT_EQ(wrong, 0) << c.outer << 'x' << c.depth << 'x' << c.batch << ", " << products << " products of "
                      << bytes << " bytes, " << (is_b ? 'b' : 'a') << ", width " << width
                      << (transposed ? ", transposed" : "");
}

template <int products, int bytes, bool is_b>
void expect_all_segments() {
  for (SplitCase const& c : {SplitCase{1, 1, 1, 0}, {32, 64, 1, 0}, {33, 67, 2, 5}, {70, 9, 1, 3}}) {
    expect_segments<products, bytes, is_b, 1, false>(c), expect_segments<products, bytes, is_b, 4, false>(c);
    expect_segments<products, bytes, is_b, 1, true>(c), expect_segments<products, bytes, is_b, 4, true>(c);
  }
}

TEST(Pieces, LieInSegmentsOfK) {
  expect_all_segments<3, 2, false>(), expect_all_segments<3, 2, true>();
  expect_all_segments<6, 2, false>(), expect_all_segments<6, 2, true>();
  expect_all_segments<9, 2, false>(), expect_all_segments<9, 2, true>();
  expect_all_segments<3, 4, false>(), expect_all_segments<3, 4, true>();
}

}  // namespace
}  // namespace cosmati::emulated
