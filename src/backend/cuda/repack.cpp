// Repacking kernels by element size, width and direction: types of one size share them.
#include "src/backend/cuda/repack.h"

#include <fmt/format.h>

#include <algorithm>

#include "cosmati/gemm/repack.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/gemm/launch.h"

namespace cosmati::cuda {
namespace {

constexpr int threads = 256;

jit::Source source_of(RepackRecipe const& repack, int element_bytes, std::string const& architecture) {
  jit::Source source;
  source.text = "#include \"cosmati/gemm/repack.h\"\n";
  source.name_expression = fmt::format("cosmati::repack_kernel<{}, {}, {}>", element_bytes, repack.width,
                                       repack.from != repack.to);
  source.architecture = architecture;
  source.label = "repacking";
  return source;
}

// The tile of a block, and its shared memory: RepackTile and SharedStorage for who has no template arguments.
struct TileOfBlock {
  Index rows, columns;
  unsigned shared_bytes;
};
TileOfBlock tile_of(int element_bytes, bool transposed) {
  Index const packed = 4 / element_bytes;
  return transposed ? TileOfBlock{32 * packed, 32 * packed, static_cast<unsigned>(32 * packed * 128)}
                    : TileOfBlock{32, 128 * packed, 128};
}

}  // namespace

std::vector<jit::Source> repack_sources(Plan<GemmProblem> const& plan) {
  plan::CanonicalGemm const form = plan::canonical(plan.problem);
  std::vector<jit::Source> sources;
  auto const add = [&](plan::MatrixForm const& operand, RepackRecipe const& repack) {
    if (repack.bytes > 0)
      sources.push_back(source_of(repack, size_of(operand.type), architecture_of(plan.device.gpu)));
  };
  add(form.a, plan.recipe.repack_a);
  add(form.b, plan.recipe.repack_b);
  return sources;
}

RepackPass::RepackPass(Gpu const& gpu, plan::MatrixForm const& operand, RepackRecipe const& repack,
                       Index outer, Index depth, Index batch)
    : operand_(operand), repack_(repack), batch_(batch), element_bytes_(size_of(operand.type)) {
  if (repack.bytes == 0) return;
  bool const along_depth = repack.from == Along::depth;
  rows_ = along_depth ? outer : depth;
  columns_ = along_depth ? depth : outer;
  jit::Cubin const cubin = jit::kernel_cache().get(source_of(repack, element_bytes_, architecture_of(gpu)));
  function_ = Module(gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
}

void const* RepackPass::enqueue(void const* data, std::byte* workspace, Stream stream) const {
  if (repack_.bytes == 0) return data;
  bool const along_depth = repack_.from == Along::depth, transposed = repack_.from != repack_.to;
  RepackParameters parameters;
  parameters.from = plan::matrix_arguments(operand_, data);
  if (!along_depth) std::swap(parameters.from.row_stride, parameters.from.column_stride);
  parameters.to = workspace + repack_.offset;
  parameters.rows = rows_;
  parameters.columns = columns_;
  parameters.pitch = repack_.pitch;
  parameters.matrix_pitch = repack_.matrix_pitch;
  TileOfBlock const tile = tile_of(element_bytes_, transposed);
  Index const tiles = (rows_ + tile.rows - 1) / tile.rows * ((columns_ + tile.columns - 1) / tile.columns);
  constexpr Index most_batch = 65535;
  for (Index first = 0; first < batch_; first += most_batch) {
    parameters.first_batch = first;
    auto const matrices = static_cast<unsigned>(std::min(most_batch, batch_ - first));
    function_.launch({static_cast<unsigned>(tiles), 1, matrices}, threads, tile.shared_bytes, parameters,
                     stream);
  }
  return workspace + repack_.offset;
}

}  // namespace cosmati::cuda
