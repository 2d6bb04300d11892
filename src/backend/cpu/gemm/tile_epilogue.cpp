// TileEpilogue: the regions of a result are the tiles of a grid.
#include "src/backend/cpu/gemm/tile_epilogue.h"

#include "cosmati/epilogue/parse.h"

namespace cosmati::cpu {
namespace {

constexpr std::string_view swapped_indices[] = {"batch", "n", "m"};

TensorDescription transpose(TensorDescription t) {
  if (t.present()) t.layout = t.layout.permuted(0, 2, 1);
  return t;
}

}  // namespace

OrientedGemm::OrientedGemm(GemmProblem const& given)
    : problem(given),
      transposed(given.d.layout.stride[2] != 1 && given.n() > 1 &&
                 (given.d.layout.stride[1] == 1 || given.m() == 1)),
      indices(transposed ? swapped_indices : epilogue::gemm_indices) {
  if (!transposed) return;
  problem.a = transpose(given.b);
  problem.b = transpose(given.a);
  problem.c = transpose(given.c);
  problem.d = transpose(given.d);
  for (TensorDescription& store : problem.epilogue.stores) store = transpose(store);
}

TileEpilogue::TileEpilogue(OrientedGemm const& product, TileGrid const& grid, DataType accumulator,
                           bool in_double)
    : regions_(product.problem.epilogue, product.indices, product.problem.c, product.problem.d, in_double) {
  if (grid.size() == 0) return;
  Index const last_column = (grid.across() - 1) * grid.down();
  for (Index corner : {Index{0}, grid.down() - 1, last_column, last_column + grid.down() - 1}) {
    Tile const tile = grid.at(corner);
    regions_.add(describe(accumulator, Shape{1, tile.rows, tile.columns}));
  }
}

void TileEpilogue::run(Tile const& tile, void const* sums, GemmProblem::Arguments const& arguments,
                       std::byte* workspace) const {
  regions_.run({1, tile.rows, tile.columns}, {tile.batch, tile.row, tile.column},
               {sums, arguments.c, arguments.operands, arguments.scalars, arguments.d, arguments.stores},
               workspace);
}

}  // namespace cosmati::cpu
