// Packing kernels by element size; data types of equal size share a kernel.
#include "src/backend/cuda/packing.h"

#include <fmt/format.h>

#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/conv/packing.h"

namespace cosmati::cuda {

namespace {

char const* bits_of(int bytes) {
  return bytes == 1   ? "unsigned char"
         : bytes == 2 ? "unsigned short"
         : bytes == 4 ? "unsigned"
                      : "unsigned long long";
}

}  // namespace

std::vector<jit::Source> packing_sources(Plan<ConvolutionProblem> const& plan) {
  PackRecipe const& recipe = plan.recipe.packing;
  if (!recipe.image && !recipe.other) return {};
  ConvolutionProblem const& p = plan.problem;
  bool const unpacks = plan::packs_result(p, recipe);
  int const of_operands = size_of((p.direction == ConvolutionDirection::data ? p.y : p.x).type);
  jit::Source source;
  source.text = "#include \"cosmati/conv/packing.h\"\n";
  source.architecture = architecture_of(plan.device.gpu);
  source.label = "packing";
  source.name_expression = fmt::format("cosmati::pack_kernel<cosmati::PackTraits<{}>>", bits_of(of_operands));
  std::vector<jit::Source> sources{source};
  if (unpacks) {
    source.label = "unpacking";
    source.name_expression = fmt::format("cosmati::unpack_kernel<{}>", bits_of(size_of(p.w.type)));
    sources.push_back(source);
  }
  return sources;
}

PackPasses::PackPasses(Plan<ConvolutionProblem> const& plan)
    : problem_(plan.problem), recipe_(plan.recipe.packing) {
  std::vector<jit::Source> const sources = packing_sources(plan);
  Function* const functions[] = {&pack_, &unpack_};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    jit::Cubin const cubin = jit::kernel_cache().get(sources[i]);
    *functions[i] = Module(plan.device.gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
  }
}

ConvolutionProblem::Arguments PackPasses::enqueue(ConvolutionProblem::Arguments arguments,
                                                  std::byte* workspace, Stream stream) const {
  for (plan::PackLaunch const& launch : plan::pack_launches(problem_, recipe_, arguments, workspace))
    pack_.launch({static_cast<unsigned>(launch.blocks), static_cast<unsigned>(launch.blocks_of_runs), 1},
                 pack_threads, 0, launch.parameters, stream);
  return arguments;
}

void PackPasses::finish(ConvolutionProblem::Arguments const& given, std::byte* workspace,
                        Stream stream) const {
  if (!plan::packs_result(problem_, recipe_)) return;
  plan::UnpackLaunch const launch = plan::unpack_launch(problem_, recipe_, given, workspace);
  unpack_.launch({static_cast<unsigned>(launch.blocks), 1, 1}, pack_threads, 0, launch.parameters, stream);
}

}  // namespace cosmati::cuda
