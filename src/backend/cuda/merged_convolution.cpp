// The text of direct_merged, and its launch.
#include "src/backend/cuda/merged_convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/convolution_epilogue.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/plan/conv/direct_merged.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

class MergedConvolution final : public Kernel<Problem> {
 public:
  MergedConvolution(Plan<Problem> const& plan, Function function)
      : problem_(plan.problem),
        merged_(plan::merged_form(plan.problem, plan.recipe.merged)),
        grid_(plan::merged_grid(plan.problem, plan.recipe.merged)),
        ordinal_(plan.device.gpu.ordinal),
        shared_bytes_(plan.recipe.sliding.shared_bytes),
        function_(std::move(function)) {
    function_.allow_shared_bytes(shared_bytes_);
  }

  void enqueue(Problem::Arguments const& arguments, std::byte*, Stream stream) const override {
    Current const current(ordinal_);
    plan::ConvolutionForm const& form = merged_.form;
    if (form.rows() == 0 || form.columns() == 0) return;
    with_epilogue_arguments(problem_, [&]<class Epilogue>(Epilogue epilogue) {
      fill_epilogue(epilogue, form, arguments);
      MergedParameters<Epilogue, DigitArguments> parameters{
          merged_.window, plan::digit_arguments(form.d, arguments.dx), epilogue};
      parameters.window.image = arguments.dy;
      parameters.window.filter = arguments.w;
      constexpr Index most_groups = 65535;
      for (Index first = 0; first < grid_.z; first += most_groups) {
        parameters.window.first_group = first;
        function_.launch({static_cast<unsigned>(grid_.x), static_cast<unsigned>(grid_.y),
                          static_cast<unsigned>(std::min(most_groups, grid_.z - first))},
                         static_cast<unsigned>(merged_.window.shape.threads()),
                         static_cast<unsigned>(shared_bytes_), parameters, stream);
      }
    });
  }

 private:
  Problem problem_;
  plan::MergedForm merged_;
  plan::MergedGrid grid_;
  int ordinal_;
  int shared_bytes_;
  Function function_;
};

std::string axis_text(MergedAxis const& axis) {
  return fmt::format("MergedAxis{{{}, {}, {}, {}}}", axis.stride, axis.taps, axis.dilation, axis.pad);
}

std::string shape_text(MergedShape const& shape) {
  char const* const run = shape.run == MergedRun::columns    ? "columns"
                          : shape.run == MergedRun::channels ? "channels"
                                                             : "none";
  return fmt::format("MergedShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, MergedRun::{}}}",
                     axis_text(shape.rows), axis_text(shape.columns), shape.channels, shape.cells,
                     shape.threads_down, shape.threads_across, shape.parts, shape.inputs, shape.blocks,
                     shape.vector, shape.pieces, shape.async, run);
}

}  // namespace

jit::Source merged_source(Plan<Problem> const& plan) {
  MergedShape const& shape = plan.recipe.merged;
  plan::ConvolutionForm const form = plan::merged_form(plan.problem, shape).form;
  std::size_t const bytes = with_epilogue_arguments(plan.problem, []<class Epilogue>(Epilogue const&) {
    return sizeof(MergedParameters<Epilogue, DigitArguments>);
  });
  jit::Source source;
  source.text = fmt::format(
      "#include \"cosmati/conv/direct_merged.h\"\nnamespace cosmati {{\n{}"
      "using ComposedTraits = DirectMergedTraits<{}, true, {}, {}, {},\n{},\nDigitDestination<{}, {}>>;\n"
      "static_assert(sizeof(ComposedTraits::Params) == {});\n"
      "static_assert(ComposedTraits::threads == {});\n}}\n",
      function_text(plan.problem, form), shape_text(shape), name_of(plan.problem.y.type),
      name_of(plan.problem.w.type), name_of(form.sum), epilogue_text(form), name_of(form.d.type),
      form.d.width, bytes, shape.threads());
  source.name_expression = "cosmati::direct_merged_kernel<cosmati::ComposedTraits>";
  source.architecture = architecture_of(plan.device.gpu);
  source.label = form.identity ? "" : plan.problem.epilogue.expression.text();
  return source;
}

std::unique_ptr<Kernel<Problem>> prepare_merged(Plan<Problem> const& plan, Function function) {
  return std::make_unique<MergedConvolution>(plan, std::move(function));
}

}  // namespace cosmati::cuda
