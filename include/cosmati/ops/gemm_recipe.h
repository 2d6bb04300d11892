// The parameters of a GPU matrix product kernel, compiled or emulated, beyond its name.
#pragma once
#include <cstddef>
#include <string>

#include "cosmati/core/number.h"
#include "cosmati/gemm/policy.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// How an operand is read: MN-major (outer) or K-major (depth), in vectors of `width`. With `by_threads`, the
// producer's threads load this operand instead of TMA; with `transposed`, they also transpose it.
struct OperandAccess {
  Along along = Along::k;
  int width = 1;
  bool by_threads = false, transposed = false;
  friend bool operator==(OperandAccess const&, OperandAccess const&) = default;
};

// An operand copied into the workspace before the product: rows contiguous along `to`, `pitch` elements
// apart. Read along `from` in vectors of `width`.
struct RepackRecipe {
  Along from = Along::k, to = Along::k;
  int width = 1;
  Index pitch = 0, matrix_pitch = 0;  // elements
  Index rows_of_warps = 0;            // of all matrices, if a warp copies each
  std::size_t bytes = 0;              // 0: the operand is not repacked
  std::size_t offset = 0;             // in the workspace
  friend bool operator==(RepackRecipe const&, RepackRecipe const&) = default;
};

struct GemmRecipe {
  std::string policy_name;  // "large"; empty: user-defined fields
  GemmPolicy policy;
  // The kernel computes the transpose, transposed(b) * transposed(a), so that rows of its result are
  // contiguous; below, a, b, m and n are those of the kernel.
  bool swapped = false;
  OperandAccess a, b;
  int result_width = 1;  // elements of d per store
  DataType sum = DataType::f32;
  int splits = 1;         // split-K: parts of k
  int streamed = 0;       // stream-K: number of leading tiles whose k steps are divided into equal ranges
  int stream_blocks = 0;  // stream-K: number of blocks that share the streamed tiles
  std::size_t flag_bytes = 0;     // size of the partial-sum flags, at offset 0 of the workspace
  std::size_t partial_bytes = 0;  // size of the partial sums, after the flags
  RepackRecipe repack_a, repack_b;
  double predicted_seconds = 0;
  friend bool operator==(GemmRecipe const&, GemmRecipe const&) = default;
};

// "large 128x128x8, warp 32x64, thread 8x8, 2 stages, ...".
std::string to_string(GemmRecipe const& recipe);
// "large 128x128x8": its first part.
std::string policy_text(GemmRecipe const& recipe);

}  // namespace cosmati
