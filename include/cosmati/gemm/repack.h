// Copies an operand into a layout that TMA and wgmma support: contiguous rows that begin at multiples of 16
// bytes, transposed if it must be K-major. Its cost is memory bandwidth: every element is read once and
// written once.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/repack_arguments.h"

namespace cosmati {

template <int bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using type = unsigned char;
};
template <>
struct BitsOf<2> {
  using type = unsigned short;
};
template <>
struct BitsOf<4> {
  using type = unsigned;
};

// `width`: elements of a run; the address of a run is a multiple of its size.
template <int element_bytes, int width, bool transposed>
struct Repack {
  using Tile = RepackTile<element_bytes, transposed>;
  using Bits = typename BitsOf<element_bytes>::type;
  static constexpr int packed = Tile::packed, threads = Tile::threads;
  // (columns, words of rows); word w of column c lies at w ^ (c / packed): no bank conflicts.
  struct SharedStorage {
    unsigned word[transposed ? Tile::columns : 1][32];
  };
  static_assert(sizeof(SharedStorage) == Tile::shared_bytes);

  Bits const* from;
  Bits* to;
  Index row_stride, column_stride, pitch;
  int rows, columns;  // remaining rows and columns of the matrix from the tile's first

  // Returns elements (row, column) to (row, column + packed - 1) in a word; elements outside the matrix are
  // zero.
  COSMATI_DEVICE unsigned load(int row, int column) const {
    Bits const* const first = from + row * row_stride + column * column_stride;
    bool const whole = row < rows && column + packed <= columns;
    if (width >= packed && whole) return arch::load_constant<unsigned>(first);
    unsigned word = 0;
    COSMATI_UNROLL
    for (int e = 0; e < packed; ++e)
      if (row < rows && column + e < columns)
        word |= static_cast<unsigned>(arch::load_constant<Bits>(first + e * column_stride))
                << 8 * element_bytes * e;
    return word;
  }

  // Transposes `packed` words, each of `packed` elements.
  COSMATI_DEVICE static void transpose(unsigned (&word)[packed]) {
    if constexpr (packed == 4) {
      unsigned columns[4];
      arch::transpose_bytes(word, columns);
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i) word[i] = columns[i];
    } else if constexpr (packed == 2) {
      unsigned const first = arch::permute_bytes(word[0], word[1], 0x5410);
      word[1] = arch::permute_bytes(word[0], word[1], 0x7632);
      word[0] = first;
    }
  }

  COSMATI_DEVICE void copy_transposed(SharedStorage& shared) const {
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    unsigned word[32 / Tile::warps][packed];
    COSMATI_UNROLL
    for (int g = 0; g < 32 / Tile::warps; ++g) {
      COSMATI_UNROLL
      for (int i = 0; i < packed; ++i)
        word[g][i] = load((warp + g * Tile::warps) * packed + i, lane * packed);
    }
    COSMATI_UNROLL
    for (int g = 0; g < 32 / Tile::warps; ++g) {
      transpose(word[g]);
      COSMATI_UNROLL
      for (int i = 0; i < packed; ++i)
        shared.word[lane * packed + i][(warp + g * Tile::warps) ^ lane] = word[g][i];
    }
    arch::block_barrier();
    COSMATI_UNROLL
    for (int g = 0; g < Tile::columns / Tile::warps; ++g) {
      int const column = warp + g * Tile::warps, row = lane * packed;
      if (column < columns && row < rows)  // a word that begins inside ends inside the pitch
        arch::store_global(to + column * pitch + row, shared.word[column][lane ^ column / packed]);
    }
  }

  COSMATI_DEVICE void copy_straight() const {
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    COSMATI_UNROLL
    for (int g = 0; g < Tile::rows / Tile::warps; ++g) {
      int const row = warp + g * Tile::warps;
      unsigned word[4];
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i) word[i] = load(row, (i * 32 + lane) * packed);
      COSMATI_UNROLL
      for (int i = 0; i < 4; ++i) {
        int const column = (i * 32 + lane) * packed;
        if (row < rows && column < columns) arch::store_global(to + row * pitch + column, word[i]);
      }
    }
  }
};

// Grid: (tiles, 1, matrices); block: RepackTile::threads; dynamic shared memory: SharedStorage.
template <int element_bytes, int width, bool transposed>
COSMATI_KERNEL((RepackTile<element_bytes, transposed>::threads), 4)
repack_kernel(COSMATI_PARAMETER RepackParameters params) {
  using Tile = RepackTile<element_bytes, transposed>;
  using Copy = Repack<element_bytes, width, transposed>;
  using Bits = typename Copy::Bits;
  auto& shared = arch::shared_storage<typename Copy::SharedStorage>();
  int const across = static_cast<int>((params.columns + Tile::columns - 1) / Tile::columns);
  Index const first_row = Index{arch::block_x() / across} * Tile::rows;
  Index const first_column = Index{arch::block_x() % across} * Tile::columns;
  Index const batch = params.first_batch + arch::block_z();
  Index const row_stride = params.from.row_stride;
  Index const column_stride = width > 1 ? 1 : params.from.column_stride;
  Index const place =
      transposed ? first_column * params.pitch + first_row : first_row * params.pitch + first_column;
  Copy const copy{base_of<Bits>(params.from, batch) + first_row * row_stride + first_column * column_stride,
                  static_cast<Bits*>(params.to) + batch * params.matrix_pitch + place,
                  row_stride,
                  column_stride,
                  params.pitch,
                  clamp_to_int(params.rows - first_row),
                  clamp_to_int(params.columns - first_column)};
  if constexpr (transposed)
    copy.copy_transposed(shared);
  else
    copy.copy_straight();
}

}  // namespace cosmati
