// The epilogue of a product, one tile at a time, while the sums are in the cache of the thread that computed
// them.
#pragma once
#include "cosmati/ops/gemm.h"
#include "src/backend/cpu/gemm/tiles.h"
#include "src/backend/cpu/region_epilogue.h"

namespace cosmati::cpu {

// A product in the form that kernels require: the columns of d are contiguous, or neither rows nor columns
// are. If necessary, it is d^T = b^T * a^T; operands keep the names of their indices.
struct OrientedGemm {
  explicit OrientedGemm(GemmProblem const& given);

  GemmProblem problem;
  bool transposed;
  std::span<std::string_view const> indices;  // names of the indices of the batch, the rows and the columns
  GemmProblem::Arguments arguments(GemmProblem::Arguments given) const {
    if (transposed) std::swap(given.a, given.b);
    return given;
  }
};

class TileEpilogue {
 public:
  // The sums are of type `accumulator`; the epilogue is evaluated in double or in float.
  TileEpilogue(OrientedGemm const& product, TileGrid const& grid, DataType accumulator, bool in_double);

  std::size_t workspace_bytes() const { return regions_.workspace_bytes(); }  // per thread

  // Writes d and the stores of the tile. `sums` are dense (rows, columns); `arguments` are those of the whole
  // product, original or transposed.
  void run(Tile const& tile, void const* sums, GemmProblem::Arguments const& arguments,
           std::byte* workspace) const;

 private:
  RegionEpilogue regions_;
};

}  // namespace cosmati::cpu
