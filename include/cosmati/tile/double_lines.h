// Fragments of the f64 tensor cores, read from tiles that TMA wrote, and their sums.
//
// The mapping of the instruction's rows, columns and depths to the tile is free as long as its three operands
// agree. It is chosen so that eight lanes that are served together read 16 bytes each from different banks.
// With g = lane / 4 and t = lane % 4:
// - depths t and t + 4 of eight are depths 2 t and 2 t + 1 of the tile;
// - in a tile that is contiguous along the depth ("deep"), line g of eight is line g / 2 + 4 (g % 2), since
//   the permutation of the tile's chunks moves lines 0 to 3 and 4 to 7 to different halves;
// - in another tile, lines g of two neighboring eights are lines 2 g and 2 g + 1 of sixteen.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/tile/double_fragment.h"
#include "cosmati/tile/tensor_tile.h"

namespace cosmati {

// How a lane reads the lines (rows of A, columns of B) of an operand's tile. A pair that is adjacent in
// registers as the instruction needs it takes no move: of A the two rows at one depth, of B the two depths of
// a column.
template <class Tile, bool is_a>
class DoubleLines {
  static_assert(Tile::element_bytes == 8 && Tile::row_bytes == 128 && Tile::depth % 8 == 0,
                "f64 operands: a row of a tile must have 16 elements, and a step a multiple of 8");

 public:
  static constexpr bool deep = Tile::along == Along::k;
  // The pair that is adjacent in registers: two lines at one depth, otherwise two depths of a line.
  static constexpr bool by_depth = is_a || !deep;
  // The line of every eight (deep), or of every sixteen, that lane 4 g + t reads first.
  COSMATI_CONSTEXPR static int line(int g) { return deep ? g / 2 + g % 2 * 4 : 2 * g; }
  // The offset in the tile of the 16 bytes that a lane reads of lines that begin at `first`: depths 2 t and
  // 2 t + 1 of eight of a line (octet: which eight of 16), or depth 2 t + which of two lines.
  COSMATI_CONSTEXPR static int offset(int first, int lane, int octet, int which) {
    int const g = lane / 4, t = lane % 4;
    return deep ? tile_offset(first + line(g), octet * 64 + t * 16, Tile::box.rows, Tile::swizzle)
                : tile_offset(2 * t + which, (first + line(g)) * 8, Tile::box.rows, Tile::swizzle);
  }

  COSMATI_DEVICE DoubleLines(Tile const& tile, int first) : bytes_(&tile.bytes[0][0][0]) {
    COSMATI_UNROLL
    for (int i = 0; i < 2; ++i) offset_[i] = offset(first, arch::thread() % 32, i, i);
  }

  // Reads eight depths, number `octet` of tile `stage` of an array, of lines 16 * pair to 16 * pair + 15:
  // depth 2 t + j of line line(g) + (deep ? 8 * i : i) to to[j][i] if by_depth, otherwise to to[i][j].
  COSMATI_DEVICE void read(double (&to)[2][2], int stage, int octet, int pair) const {
    unsigned char const* const from = bytes_ + stage * static_cast<int>(sizeof(Tile));
    COSMATI_UNROLL
    for (int i = 0; i < 2; ++i) {
      int const at =
          deep ? offset_[octet % 2] + octet / 2 * Tile::box_bytes + (16 * pair + 8 * i) * Tile::row_bytes
               : offset_[i] + octet * 8 * Tile::row_bytes + pair * Tile::box_bytes;
      if constexpr (deep == by_depth) {  // 16 bytes would need moves
        COSMATI_UNROLL
        for (int j = 0; j < 2; ++j) to[j][i] = arch::load<double>(from + at + 8 * j);
      } else {
        auto const two = arch::load<Vector<double, 2>>(from + at);
        to[i][0] = two[0], to[i][1] = two[1];
      }
    }
  }

 private:
  unsigned char const* bytes_;
  int offset_[2];
};

// A thread's sums; those of a B that is not deep are DoubleAccumulators.
template <int rows, int columns, bool deep_b>
struct DoubleSums : DoubleAccumulators<rows, columns> {
  using Base = DoubleAccumulators<rows, columns>;
  struct Fragments {
    double a[rows / 2][2][2];     // (16 rows, depth, row)
    double b[columns / 4][2][2];  // (16 columns, column, depth), or (16 columns, depth, column)
  };

  // Columns 2 t and 2 t + 1 of an instruction are columns t and t + 4 of a deep tile's eight.
  COSMATI_DEVICE double get(int i, int j) const {
    return deep_b ? this->value[i / 2][j / 2][i % 2 * 2 + j % 2] : Base::get(i, j);
  }
  COSMATI_DEVICE void clear() {
    this->for_each([](double& sum) { sum = 0; });
  }
  COSMATI_DEVICE void keep_uninitialized() { clear(); }
  COSMATI_DEVICE void fence_registers() {}
  COSMATI_DEVICE void add_products(Fragments const& fragments) {
    auto const& a = fragments.a;
    auto const& b = fragments.b;
    if constexpr (deep_b) {
      for_each_product<rows / 2, columns / 2>(
          [&](int i, int j) { arch::multiply_matrices(this->value[i][j], a[i], b[j / 2][j % 2]); });
    } else {
      COSMATI_UNROLL
      for (int depth = 0; depth < 2; ++depth)
        for_each_product<rows / 2, columns / 2>([&](int i, int j) {
          arch::multiply_matrices(this->value[i][j], a[i][depth], b[j / 2][depth][j % 2]);
        });
    }
  }
};

}  // namespace cosmati
