// Text and launches of a filter gradient by direct_tiled.
#include "src/backend/cuda/filter_tiled.h"

#include <fmt/format.h>

#include "src/backend/cuda/convolution_epilogue.h"
#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/conv/filter_tiled.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;
using Parameters = FilterTiledParameters<NoEpilogueArguments, DigitArguments>;

constexpr unsigned sum_threads = 512;

unsigned threads_of(SlidingRecipe const& recipe) { return 1u << recipe.lanes_shift; }

class FilterTiled final : public Kernel<Problem> {
 public:
  FilterTiled(Plan<Problem> const& plan, Function sums, Function parts)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        gradient_(plan::filter_tiled_form(plan.problem)),
        ordinal_(plan.device.gpu.ordinal),
        sums_(std::move(sums)),
        parts_(std::move(parts)) {
    sums_.allow_shared_bytes(recipe_.sliding.shared_bytes);
  }

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    if (gradient_.form.rows() == 0 || gradient_.form.columns() == 0) return;
    Current const current(ordinal_);
    bool const bias = plan::makes_bias_gradient(problem_, recipe_);
    Parameters parameters;
    plan::fill_filter_tiled(parameters, gradient_, recipe_.sliding, arguments.x, arguments.dy, workspace,
                            bias ? arguments.db : nullptr, bias ? problem_.db.layout.stride[0] : 0);
    parameters.d = plan::digit_arguments(gradient_.form.d, arguments.dw);
    launch(sums_, plan::filter_tiled_grid(gradient_, recipe_.sliding), threads_of(recipe_.sliding),
           static_cast<unsigned>(recipe_.sliding.shared_bytes), parameters, stream);
    launch(parts_, plan::filter_tiled_sum_grid(gradient_, parameters.schedule), sum_threads,
           sum_threads * static_cast<unsigned>(size_of(gradient_.form.sum)), parameters, stream);
  }

 private:
  static void launch(Function const& function, plan::SlidingGrid const& grid, unsigned threads,
                     unsigned shared_bytes, Parameters const& parameters, Stream stream) {
    function.launch(
        {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
        threads, shared_bytes, parameters, stream);
  }

  Problem problem_;
  ConvolutionRecipe recipe_;
  plan::FilterTiledForm gradient_;
  int ordinal_;
  Function sums_, parts_;
};

}  // namespace

jit::Source filter_tiled_source(Plan<Problem> const& plan, FilterTiledPass pass) {
  plan::FilterTiledForm const gradient = plan::filter_tiled_form(plan.problem);
  plan::ConvolutionForm const& form = gradient.form;
  SlidingRecipe const& sliding = plan.recipe.sliding;
  jit::Source source;
  source.text = fmt::format(
      "#include \"cosmati/conv/filter_tiled.h\"\nnamespace cosmati {{\n"
      "using ComposedTraits = FilterTiledTraits<{}, {}, {}, {}, {}, {},\n{},\nDigitDestination<{}, {}>,\n{}, "
      "{}, "
      "{}, {}>;\n"
      "static_assert(sizeof(ComposedTraits::Params) == {});\n"
      "static_assert(sizeof(ComposedTraits::SumStorage) == {});\n}}\n",
      threads_of(sliding), sliding.tile.columns, sliding.tile.thread_filters, name_of(gradient.image),
      name_of(gradient.gradient), name_of(form.sum), epilogue_text(form), name_of(form.d.type), form.d.width,
      form.image_is_a, sliding.taps, sliding.output_step, sliding.tap_step, sizeof(Parameters),
      sum_threads * static_cast<unsigned>(size_of(form.sum)));
  source.name_expression = fmt::format("cosmati::filter_tiled_{}kernel<cosmati::ComposedTraits>",
                                       pass == FilterTiledPass::sums ? "" : "sum_");
  source.architecture = architecture_of(plan.device.gpu);
  return source;
}

std::unique_ptr<Kernel<Problem>> prepare_filter_tiled(Plan<Problem> const& plan) {
  auto const made = [&](FilterTiledPass pass) {
    jit::Cubin const cubin = jit::kernel_cache().get(filter_tiled_source(plan, pass));
    return Module(plan.device.gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
  };
  return std::make_unique<FilterTiled>(plan, made(FilterTiledPass::sums), made(FilterTiledPass::parts));
}

}  // namespace cosmati::cuda
