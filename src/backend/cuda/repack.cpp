// Repacking kernels by element size, width and direction: types of one size share them.
#include "src/backend/cuda/repack.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::cuda {
namespace {

struct TileOfBlock {
  Index rows, columns;
  unsigned threads, shared_bytes;
};
template <int element_bytes>
TileOfBlock tile_of(bool transposed) {
  auto const numbers = []<class Tile>(Tile) {
    return TileOfBlock{Tile::rows, Tile::columns, Tile::threads, Tile::shared_bytes};
  };
  return transposed ? numbers(RepackTile<element_bytes, true>{})
                    : numbers(RepackTile<element_bytes, false>{});
}
TileOfBlock tile_of(int element_bytes, bool transposed) {
  return element_bytes == 1   ? tile_of<1>(transposed)
         : element_bytes == 2 ? tile_of<2>(transposed)
                              : tile_of<4>(transposed);
}

}  // namespace

jit::Source repack_source(RepackRecipe const& repack, int element_bytes, std::string const& architecture) {
  jit::Source source;
  source.text = "#include \"cosmati/gemm/repack.h\"\n";
  source.name_expression = fmt::format("cosmati::repack_kernel<{}, {}, {}>", element_bytes, repack.width,
                                       repack.from != repack.to);
  source.architecture = architecture;
  source.label = "repacking";
  return source;
}

std::vector<jit::Source> repack_sources(Plan<GemmProblem> const& plan) {
  plan::CanonicalGemm const form = plan::canonical(plan.problem, plan.recipe.swapped);
  std::vector<jit::Source> sources;
  auto const add = [&](plan::MatrixForm const& operand, RepackRecipe const& repack) {
    if (repack.bytes > 0)
      sources.push_back(repack_source(repack, size_of(operand.type), architecture_of(plan.device.gpu)));
  };
  add(form.a, plan.recipe.repack_a);
  add(form.b, plan.recipe.repack_b);
  return sources;
}

RepackPass::RepackPass(Gpu const& gpu, plan::MatrixForm const& operand, RepackRecipe const& repack,
                       Index outer, Index depth, Index batch)
    : operand_(operand),
      repack_(repack),
      outer_(outer),
      depth_(depth),
      batch_(batch),
      element_bytes_(size_of(operand.type)) {
  if (repack.bytes == 0) return;
  jit::Cubin const cubin =
      jit::kernel_cache().get(repack_source(repack, element_bytes_, architecture_of(gpu)));
  function_ = Module(gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
}

void const* RepackPass::enqueue(void const* data, std::byte* workspace, Stream stream) const {
  if (repack_.bytes == 0) return data;
  RepackParameters parameters = plan::repack_parameters(operand_, repack_, outer_, depth_, data, workspace);
  TileOfBlock const tile = tile_of(element_bytes_, repack_.from != repack_.to);
  Index const tiles = (parameters.rows + tile.rows - 1) / tile.rows *
                      ((parameters.columns + tile.columns - 1) / tile.columns);
  constexpr Index most_batch = 65535;
  for (Index first = 0; first < batch_; first += most_batch) {
    parameters.first_batch = first;
    auto const matrices = static_cast<unsigned>(std::min(most_batch, batch_ - first));
    function_.launch({static_cast<unsigned>(tiles), 1, matrices}, tile.threads, tile.shared_bytes, parameters,
                     stream);
  }
  return workspace + repack_.offset;
}

}  // namespace cosmati::cuda
