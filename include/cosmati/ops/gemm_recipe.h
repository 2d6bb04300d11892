// How a GPU kernel, composed or emulated, computes a matrix product: what a plan holds beyond its name.
#pragma once
#include <cstddef>
#include <string>

#include "cosmati/core/number.h"
#include "cosmati/gemm/policy.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// How an operand is read: neighbours along m or n (outer) or k (depth), `width` at a time. With `by_threads`,
// where others come by the copy engine, this one is brought by the producer's threads.
struct OperandAccess {
  Along along = Along::depth;
  int width = 1;
  bool by_threads = false;
  friend bool operator==(OperandAccess const&, OperandAccess const&) = default;
};

// An operand that is copied into workspace before the product: rows of neighbours along `to`, each `pitch`
// elements after the one before. Read along `from`, `width` neighbours at a time.
struct RepackRecipe {
  Along from = Along::depth, to = Along::depth;
  int width = 1;
  Index pitch = 0, matrix_pitch = 0;  // elements
  std::size_t bytes = 0;              // 0: the operand is taken as it lies
  std::size_t offset = 0;             // in the workspace
  friend bool operator==(RepackRecipe const&, RepackRecipe const&) = default;
};

struct GemmRecipe {
  std::string policy_name;  // "large"; empty: fields of the user's own
  GemmPolicy policy;
  // The kernel computes the transpose, transposed(b) * transposed(a), so that rows of its result are
  // contiguous; a and b, m and n below are the kernel's.
  bool swapped = false;
  OperandAccess a, b;
  int result_width = 1;  // elements of d that are stored at a time
  DataType sum = DataType::f32;
  int splits = 1;              // split-K: parts of k
  int streamed = 0;            // stream-K: tiles, the first ones, whose steps are dealt out in equal ranges,
  int stream_blocks = 0;       // one for each of these blocks
  std::size_t flag_bytes = 0;  // at the beginning of the workspace: the flags of partial sums,
  std::size_t partial_bytes = 0;  // then the sums
  RepackRecipe repack_a, repack_b;
  // Of matrices given by pointers: tensor maps that a kernel writes into the workspace, 0: none.
  std::size_t map_bytes = 0, map_offset = 0;
  double predicted_seconds = 0;
  friend bool operator==(GemmRecipe const&, GemmRecipe const&) = default;
};

// "large 128x128x8, warp 32x64, thread 8x8, 2 stages, ...".
std::string to_string(GemmRecipe const& recipe);

}  // namespace cosmati
