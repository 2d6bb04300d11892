// Unrolling kernels by element size, width and direction: types of one size share them.
#include "src/backend/cuda/unroll.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/unroll.h"

namespace cosmati::cuda {
namespace {

char const* bits_of(int bytes) {
  return bytes == 1   ? "unsigned char"
         : bytes == 2 ? "unsigned short"
         : bytes == 4 ? "unsigned"
                      : "unsigned long long";
}

}  // namespace

std::vector<jit::Source> unroll_sources(Plan<ConvolutionProblem> const& plan) {
  if (plan.recipe.unroll.bytes == 0) return {};
  plan::WindowForm const image = plan::planned_forms(plan.problem, plan.recipe).front().unrolled;
  jit::Source source;
  source.text = "#include \"cosmati/conv/unroll.h\"\n";
  source.name_expression = fmt::format(
      "cosmati::unroll_kernel<cosmati::WindowSource<{}, cosmati::Along::{}, {}, "
      "cosmati::DepthDigits::each, {}>>",
      bits_of(size_of(image.type)), image.access.along == Along::depth ? "depth" : "outer",
      image.access.width, image.windowed);
  source.architecture = architecture_of(plan.device.gpu);
  source.label = "unrolling";
  return {source};
}

UnrollPass::UnrollPass(Plan<ConvolutionProblem> const& plan) : recipe_(plan.recipe.unroll) {
  for (jit::Source const& source : unroll_sources(plan)) {
    jit::Cubin const cubin = jit::kernel_cache().get(source);
    function_ = Module(plan.device.gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
  }
}

void const* UnrollPass::enqueue(plan::ConvolutionForm const& form, void const* image, std::byte* workspace,
                                Stream stream) const {
  if (recipe_.bytes == 0) return image;
  plan::UnrollLaunch launch = plan::unroll_launch(form, recipe_, image, workspace);
  constexpr Index most_groups = 65535;
  for (Index first = 0; first < form.groups; first += most_groups) {
    launch.parameters.first_batch = first;
    auto const groups = static_cast<unsigned>(std::min(most_groups, form.groups - first));
    function_.launch({static_cast<unsigned>(launch.blocks), 1, groups}, unroll_threads, 0, launch.parameters,
                     stream);
  }
  return launch.parameters.to;
}

}  // namespace cosmati::cuda
