// Copies an operand into a layout that TMA and wgmma support: contiguous rows that begin at multiples of 16
// bytes, transposed if it must be K-major. Its cost is memory bandwidth: every element is read once and
// written once. Another kernel splits an f32 operand into pieces, one segment of k for each product, so that
// one product of bf16 matrices with a longer k computes the sum of all products of pieces.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
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

template <RepackPolicy policy>
struct Repack {
  using Bits = typename BitsOf<policy.element_bytes>::type;
  static constexpr int element_bytes = policy.element_bytes, width = policy.width;
  static constexpr int packed = policy.packed(), warps = policy.warps;
  static constexpr int tile_rows = policy.rows(), tile_columns = policy.columns();
  // (columns, words of rows); word w of column c is at w ^ (c / packed), to avoid bank conflicts.
  struct SharedStorage {
    unsigned word[policy.transposed ? tile_columns : 1][32];
  };
  static_assert(sizeof(SharedStorage) == policy.shared_bytes());

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
    unsigned word[32 / warps][packed];
    COSMATI_UNROLL
    for (int g = 0; g < 32 / warps; ++g) {
      COSMATI_UNROLL
      for (int i = 0; i < packed; ++i) word[g][i] = load((warp + g * warps) * packed + i, lane * packed);
    }
    COSMATI_UNROLL
    for (int g = 0; g < 32 / warps; ++g) {
      transpose(word[g]);
      COSMATI_UNROLL
      for (int i = 0; i < packed; ++i) shared.word[lane * packed + i][(warp + g * warps) ^ lane] = word[g][i];
    }
    arch::block_barrier();
    COSMATI_UNROLL
    for (int g = 0; g < tile_columns / warps; ++g) {
      int const column = warp + g * warps, row = lane * packed;
      if (column < columns && row < rows)  // a word that begins inside ends inside the pitch
        arch::store_global(to + column * pitch + row, shared.word[column][lane ^ column / packed]);
    }
  }

  COSMATI_DEVICE void copy_straight() const {
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    COSMATI_UNROLL
    for (int g = 0; g < tile_rows / warps; ++g) {
      int const row = warp + g * warps;
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

// Grid: (tiles, 1, matrices); block: RepackPolicy::threads; dynamic shared memory: SharedStorage.
template <RepackPolicy policy>
COSMATI_KERNEL(RepackPolicy::threads, 4)
repack_kernel(COSMATI_PARAMETER RepackParameters params) {
  using Copy = Repack<policy>;
  using Bits = typename Copy::Bits;
  auto& shared = arch::shared_storage<typename Copy::SharedStorage>();
  int const across = static_cast<int>((params.columns + Copy::tile_columns - 1) / Copy::tile_columns);
  Index const first_row = Index{arch::block_x() / across} * Copy::tile_rows;
  Index const first_column = Index{arch::block_x() % across} * Copy::tile_columns;
  Index const batch = params.first_batch + arch::block_z();
  Index const row_stride = params.from.row_stride;
  Index const column_stride = policy.width > 1 ? 1 : params.from.column_stride;
  Index const place =
      policy.transposed ? first_column * params.pitch + first_row : first_row * params.pitch + first_column;
  Copy const copy{base_of<Bits>(params.from, batch) + first_row * row_stride + first_column * column_stride,
                  static_cast<Bits*>(params.to) + batch * params.matrix_pitch + place,
                  row_stride,
                  column_stride,
                  params.pitch,
                  clamp_to_int(params.rows - first_row),
                  clamp_to_int(params.columns - first_column)};
  if constexpr (policy.transposed)
    copy.copy_transposed(shared);
  else
    copy.copy_straight();
}

// The pieces of a factor as bits: bf16 (2 bytes), or tf32 in the format of f32 (4 bytes).
template <int piece_bytes>
struct FactorPieces {
  static constexpr bool halves = piece_bytes == 2;
  static constexpr unsigned unit = halves ? 1u : 1u << 13;  // the last bit of a piece
  unsigned p0, p1, p2, finite;

  COSMATI_DEVICE static float widen(unsigned piece) {
    return __builtin_bit_cast(float, halves ? piece << 16 : piece);
  }
  COSMATI_DEVICE static unsigned nearest(float x) {
    if constexpr (halves) return arch::Narrow<bf16>::of(x).bits;
    unsigned const bits = __builtin_bit_cast(unsigned, x);
    return (bits + (unit / 2 - 1) + (bits / unit & 1u)) & ~(unit - 1);
  }

  COSMATI_DEVICE explicit FactorPieces(float x) {
    unsigned const bits = __builtin_bit_cast(unsigned, x), magnitude = bits & 0x7fffffffu;
    bool const is_finite = magnitude < 0x7f800000u;
    p0 = halves || is_finite ? nearest(x) : magnitude > 0x7f800000u ? bits | 0x400000u : bits;
    // Truncates the largest finite numbers, which rounding would turn into infinity.
    if (is_finite && magnitude >= (halves ? 0x7f7f8000u : 0x7f7ff000u))
      p0 = halves ? bits >> 16 : bits & ~(unit - 1);
    // Keeps p0 from becoming 0: otherwise x times infinity would be NaN.
    if (magnitude != 0 && (p0 & (halves ? 0x7fffu : 0x7fffffffu)) == 0) p0 |= unit;
    finite = is_finite ? p0 : 0u;
    float const rest = is_finite ? x - widen(p0) : 0.0f;
    p1 = nearest(rest);
    p2 = halves ? nearest(rest - widen(p1)) : 0u;
  }
  COSMATI_DEVICE unsigned get(Piece piece) const {
    return piece == Piece::p0 ? p0 : piece == Piece::p1 ? p1 : piece == Piece::p2 ? p2 : finite;
  }
};

template <PiecesPolicy policy>
struct SplitOperand {
  using Tile = PieceTile;
  static constexpr int products = policy.products, width = policy.width, pitch = Tile::outer + 1;
  static constexpr int per_word = 4 / policy.piece_bytes, words = 4;  // pieces per word, words per store
  static constexpr bool is_b = policy.is_b, transposed = policy.transposed;
  using Bits = typename BitsOf<policy.piece_bytes>::type;
  struct SharedStorage {
    float value[transposed ? Tile::depth * pitch : 1];  // (depth, outer)
  };
  struct Stored {
    unsigned word[words];
  };
  struct Four {
    float value[4];
  };

  float const* from;  // the tile's first element
  Bits* to;
  Index row_stride, column_stride, row_pitch, segment;
  int outer, depth, padded;  // remaining rows and elements, and elements with padding

  COSMATI_DEVICE float load(int row, int k) const {
    return row < outer && k < depth ? arch::load_constant<float>(from + row * row_stride + k * column_stride)
                                    : 0.0f;
  }

  COSMATI_DEVICE void load_tile(SharedStorage& shared) const {
    constexpr int across = Tile::outer / width;  // threads along the outer index
    COSMATI_UNROLL
    for (int pass = 0; pass < Tile::depth * across / Tile::threads; ++pass) {
      int const place = arch::thread() + pass * Tile::threads;
      int const k = place / across, row = place % across * width;
      float value[width];
      if (width == 4 && row + width <= outer && k < depth) {
        Four const four = arch::load_constant<Four>(from + row * row_stride + k * column_stride);
        COSMATI_UNROLL
        for (int i = 0; i < width; ++i) value[i] = four.value[i];
      } else {
        COSMATI_UNROLL
        for (int i = 0; i < width; ++i) value[i] = load(row + i, k);
      }
      COSMATI_UNROLL
      for (int i = 0; i < width; ++i) shared.value[k * pitch + row + i] = value[i];
    }
    arch::block_barrier();
  }

  COSMATI_DEVICE void load_run(float (&value)[Tile::run], int row, int first,
                               SharedStorage const& shared) const {
    if constexpr (transposed) {
      COSMATI_UNROLL
      for (int i = 0; i < Tile::run; ++i) value[i] = shared.value[(first + i) * pitch + row];
    } else if (width == 4 && row < outer && first + Tile::run <= depth) {
      COSMATI_UNROLL
      for (int half = 0; half < 2; ++half) {
        Four const four = arch::load_constant<Four>(from + row * row_stride + first + 4 * half);
        COSMATI_UNROLL
        for (int i = 0; i < 4; ++i) value[4 * half + i] = four.value[i];
      }
    } else {
      COSMATI_UNROLL
      for (int i = 0; i < Tile::run; ++i) value[i] = load(row, first + i);
    }
  }

  COSMATI_DEVICE void store(float const* value, Bits* line) const {
    Stored stored[4];  // by Piece
    COSMATI_UNROLL
    for (int i = 0; i < words; ++i) {
      FactorPieces<policy.piece_bytes> const low(value[i * per_word]), high(value[(i + 1) * per_word - 1]);
      COSMATI_UNROLL
      for (int piece = 0; piece < 4; ++piece) {
        auto const which = static_cast<Piece>(piece);
        stored[piece].word[i] = per_word == 2 ? low.get(which) | high.get(which) << 16 : low.get(which);
      }
    }
    COSMATI_UNROLL
    for (int s = 0; s < products; ++s) {
      Piece const piece = is_b ? piece_pair(products, s).b : piece_pair(products, s).a;
      arch::store_global(line + s * segment, stored[static_cast<int>(piece)]);
    }
  }

  COSMATI_DEVICE void split(SharedStorage& shared) const {
    if constexpr (transposed) load_tile(shared);
    int const row = arch::thread() / (Tile::depth / Tile::run);
    int const first = arch::thread() % (Tile::depth / Tile::run) * Tile::run;
    float value[Tile::run];
    load_run(value, row, first, shared);
    if (row >= outer || first >= padded) return;
    COSMATI_UNROLL
    for (int i = 0; i < Tile::run; i += words * per_word) store(value + i, to + row * row_pitch + first + i);
  }
};

// Grid: (tiles, 1, matrices); block: PieceTile::threads; dynamic shared memory: SharedStorage.
template <PiecesPolicy policy>
COSMATI_KERNEL(PieceTile::threads, 4)
pieces_kernel(COSMATI_PARAMETER PieceParameters params) {
  using Tile = PieceTile;
  using Split = SplitOperand<policy>;
  auto& shared = arch::shared_storage<typename Split::SharedStorage>();
  Index const across = (params.segment + Tile::depth - 1) / Tile::depth;
  Index const first_row = arch::block_x() / across * Tile::outer;
  Index const first_k = arch::block_x() % across * Tile::depth;
  Index const batch = params.first_batch + arch::block_z();
  Index const row_stride = policy.transposed && policy.width > 1 ? 1 : params.from.row_stride;
  Index const column_stride = !policy.transposed && policy.width > 1 ? 1 : params.from.column_stride;
  Split const split{base_of<float>(params.from, batch) + first_row * row_stride + first_k * column_stride,
                    static_cast<typename Split::Bits*>(params.to) + batch * params.matrix_pitch +
                        first_row * params.pitch + first_k,
                    row_stride,
                    column_stride,
                    params.pitch,
                    params.segment,
                    clamp_to_int(params.outer - first_row),
                    clamp_to_int(params.depth - first_k),
                    clamp_to_int(params.segment - first_k)};
  split.split(shared);
}

}  // namespace cosmati
