// Text and launches of a depthwise filter gradient.
#include "src/backend/cuda/depthwise_filter.h"

#include <fmt/format.h>

#include "src/backend/cuda/convolution_epilogue.h"
#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/conv/depthwise_filter.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;
using Parameters = DepthwiseFilterParameters<NoEpilogueArguments, DigitArguments>;

constexpr unsigned threads = 128;

class DepthwiseFilter final : public Kernel<Problem> {
 public:
  DepthwiseFilter(Plan<Problem> const& plan, Function sums, Function parts)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        gradient_(plan::depthwise_filter_form(plan.problem)),
        ordinal_(plan.device.gpu.ordinal),
        sums_(std::move(sums)),
        parts_(std::move(parts)) {
    sums_.allow_shared_bytes(recipe_.sliding.shared_bytes);
  }

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    if (gradient_.form.rows() == 0 || gradient_.form.columns() == 0) return;
    Current const current(ordinal_);
    Parameters parameters;
    plan::fill_depthwise_filter(parameters, gradient_, recipe_.sliding, arguments.x, arguments.dy, workspace);
    parameters.d = plan::digit_arguments(gradient_.form.d, arguments.dw);
    sums_.launch({static_cast<unsigned>(plan::depthwise_filter_blocks(parameters.schedule))}, threads,
                 static_cast<unsigned>(recipe_.sliding.shared_bytes), parameters, stream);
    parts_.launch({static_cast<unsigned>(plan::depthwise_filter_sum_blocks(gradient_))}, threads, 0,
                  parameters, stream);
  }

 private:
  Problem problem_;
  ConvolutionRecipe recipe_;
  plan::DepthwiseFilterForm gradient_;
  int ordinal_;
  Function sums_, parts_;
};

}  // namespace

jit::Source depthwise_filter_source(Plan<Problem> const& plan, DepthwiseFilterPass pass) {
  plan::DepthwiseFilterForm const gradient = plan::depthwise_filter_form(plan.problem);
  plan::ConvolutionForm const& form = gradient.form;
  SlidingRecipe const& sliding = plan.recipe.sliding;
  jit::Source source;
  source.text = fmt::format(
      "#include \"cosmati/conv/depthwise_filter.h\"\nnamespace cosmati {{\n"
      "using ComposedTraits = DepthwiseFilterTraits<{}, {}, {},\n{},\nDigitDestination<{}, {}>,\n{}, {}, {}, "
      "{}>;\n"
      "static_assert(sizeof(ComposedTraits::Params) == {});\n"
      "static_assert(ComposedTraits::threads == {});\n"
      "static_assert(sizeof(ComposedTraits::SharedStorage) == {});\n}}\n",
      name_of(gradient.image), name_of(gradient.gradient), name_of(form.sum), epilogue_text(form),
      name_of(form.d.type), form.d.width, sliding.channels_last, sliding.vector, sliding.taps,
      form.image_is_a, sizeof(Parameters), threads, sliding.shared_bytes);
  source.name_expression = fmt::format("cosmati::depthwise_filter_{}kernel<cosmati::ComposedTraits>",
                                       pass == DepthwiseFilterPass::sums ? "" : "sum_");
  source.architecture = architecture_of(plan.device.gpu);
  return source;
}

std::unique_ptr<Kernel<Problem>> prepare_depthwise_filter(Plan<Problem> const& plan) {
  auto const made = [&](DepthwiseFilterPass pass) {
    jit::Cubin const cubin = jit::kernel_cache().get(depthwise_filter_source(plan, pass));
    return Module(plan.device.gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
  };
  return std::make_unique<DepthwiseFilter>(plan, made(DepthwiseFilterPass::sums),
                                           made(DepthwiseFilterPass::parts));
}

}  // namespace cosmati::cuda
