// TileEpilogue: one Pointwise per tile shape that occurs, run on pointers to the first elements of a tile.
#include "src/backend/cpu/gemm/tile_epilogue.h"

#include <array>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/convert_row.h"

namespace cosmati::cpu {
namespace {

constexpr std::string_view swapped_indices[] = {"batch", "n", "m"};

TensorDescription transpose(TensorDescription t) {
  if (t.present()) t.layout = t.layout.permuted(0, 2, 1);
  return t;
}

TensorDescription resized(TensorDescription t, Shape const& shape) {
  if (t.present()) t.layout.shape = shape;
  return t;
}

Index offset_of(TensorDescription const& t, Tile const& tile) {
  auto const& stride = t.layout.stride;
  return tile.batch * stride[0] + tile.row * stride[1] + tile.column * stride[2];
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
    : grid_(grid),
      source_(product.problem.c),
      result_(product.problem.d),
      stores_(product.problem.epilogue.stores) {
  Epilogue const& epilogue = product.problem.epilogue;
  for (std::size_t i = 0; i < epilogue.operands.size(); ++i)
    operands_.push_back(
        {epilogue.operands[i].type, spread_operand(epilogue, i, result_.shape(), product.indices)});
  if (grid.size() == 0) return;
  Index const last_column = (grid.across() - 1) * grid.down();
  for (Index corner : {Index{0}, grid.down() - 1, last_column, last_column + grid.down() - 1}) {
    Tile const tile = grid.at(corner);
    auto& pointwise = pointwise_[shape_of(tile)];
    if (pointwise) continue;
    Shape const shape{1, tile.rows, tile.columns};
    PointwiseProblem problem =
        epilogue_pointwise(epilogue, product.indices, describe(accumulator, shape), resized(source_, shape),
                           resized(result_, shape), in_double);
    for (TensorDescription& store : problem.stores) store = resized(store, shape);
    pointwise.emplace(problem, 1);
  }
}

std::size_t TileEpilogue::workspace_bytes() const {
  std::size_t maximum = 0;
  for (auto const& pointwise : pointwise_)
    if (pointwise) maximum = std::max(maximum, pointwise->workspace_bytes());
  return maximum;
}

void TileEpilogue::run(Tile const& tile, void const* sums, GemmProblem::Arguments const& arguments,
                       std::byte* workspace) const {
  std::array<void const*, max_epilogue_operands> operands;
  for (std::size_t i = 0; i < operands_.size(); ++i)
    operands[i] = element(operands_[i].type, arguments.operands[i], offset_of(operands_[i], tile));
  std::array<void*, max_epilogue_stores> stores;
  for (std::size_t i = 0; i < stores_.size(); ++i)
    stores[i] = element(stores_[i].type, arguments.stores[i], offset_of(stores_[i], tile));
  void const* const source =
      source_.present() ? element(source_.type, arguments.c, offset_of(source_, tile)) : nullptr;
  void* const result = element(result_.type, arguments.d, offset_of(result_, tile));
  pointwise_[shape_of(tile)]->run({sums,
                                   source,
                                   {operands.data(), operands_.size()},
                                   arguments.scalars,
                                   result,
                                   {stores.data(), stores_.size()}},
                                  workspace);
}

}  // namespace cosmati::cpu
