// The text of the kernels that slide windows, and their launches.
#include "src/backend/cuda/sliding_convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/convolution_epilogue.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

bool is_depthwise(ConvolutionRecipe const& recipe) {
  return recipe.algorithm == ConvolutionAlgorithm::depthwise;
}

template <class Epilogue>
std::size_t parameter_bytes(ConvolutionRecipe const& recipe) {
  return is_depthwise(recipe) ? sizeof(DepthwiseParameters<Epilogue, DigitArguments>)
                              : sizeof(DirectTiledParameters<Epilogue, DigitArguments>);
}

class SlidingConvolution final : public Kernel<Problem> {
 public:
  SlidingConvolution(Plan<Problem> const& plan, Function function)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        forms_(plan::sliding_forms(plan.problem, plan.recipe.algorithm)),
        ordinal_(plan.device.gpu.ordinal),
        function_(std::move(function)) {
    function_.allow_shared_bytes(recipe_.sliding.shared_bytes);
    if (is_depthwise(recipe_)) return;
    for (plan::SlidingForm const& sliding : forms_)  // a search for pitches, as long as some launches
      tiles_.push_back(sliding.form.rows() == 0 || sliding.form.columns() == 0
                           ? DirectTileSchedule{}
                           : plan::tile_schedule(sliding, recipe_.sliding));
  }

  void enqueue(Problem::Arguments const& arguments, std::byte*, Stream stream) const override {
    Current const current(ordinal_);
    with_epilogue_arguments(problem_, [&]<class Epilogue>(Epilogue epilogue) {
      for (std::size_t i = 0; i < forms_.size(); ++i) {
        plan::SlidingForm const& sliding = forms_[i];
        if (sliding.form.rows() == 0 || sliding.form.columns() == 0) continue;
        fill_epilogue(epilogue, sliding.form, arguments);
        plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, sliding.form, arguments);
        bool const first = sliding.form.image_is_a;
        SlidingArguments const window = plan::sliding_arguments(sliding, first ? pointers.a : pointers.b,
                                                                first ? pointers.b : pointers.a);
        DigitArguments const d = plan::digit_arguments(sliding.form.d, pointers.d);
        if (is_depthwise(recipe_))
          enqueue_depthwise(sliding, DepthwiseParameters<Epilogue, DigitArguments>{window, d, epilogue, {}},
                            stream);
        else
          enqueue_tiles(sliding,
                        DirectTiledParameters<Epilogue, DigitArguments>{window, d, epilogue, tiles_[i]},
                        stream);
      }
    });
  }

 private:
  template <class Epilogue>
  void enqueue_depthwise(plan::SlidingForm const& sliding,
                         DepthwiseParameters<Epilogue, DigitArguments> parameters, Stream stream) const {
    constexpr unsigned threads = 128;
    parameters.schedule = plan::depthwise_schedule(sliding, recipe_.sliding);
    launch(plan::depthwise_grid(sliding, recipe_.sliding), threads, parameters, stream);
  }
  template <class Epilogue>
  void enqueue_tiles(plan::SlidingForm const& sliding,
                     DirectTiledParameters<Epilogue, DigitArguments> parameters, Stream stream) const {
    plan::SlidingGrid grid = plan::tile_grid(sliding, recipe_.sliding);
    constexpr Index most_groups = 65535;
    for (Index first = 0; first < sliding.form.groups; first += most_groups) {
      parameters.schedule.first_group = first;
      grid.z = std::min(most_groups, sliding.form.groups - first);
      launch(grid, static_cast<unsigned>(plan::tile_threads(recipe_.sliding)), parameters, stream);
    }
  }
  template <class Parameters>
  void launch(plan::SlidingGrid const& grid, unsigned threads, Parameters const& parameters,
              Stream stream) const {
    function_.launch(
        {static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z)},
        threads, static_cast<unsigned>(recipe_.sliding.shared_bytes), parameters, stream);
  }

  Problem problem_;
  ConvolutionRecipe recipe_;
  std::vector<plan::SlidingForm> forms_;
  std::vector<DirectTileSchedule> tiles_;  // of direct_tiled, one for each form
  int ordinal_;
  Function function_;
};

std::string traits_text(ConvolutionRecipe const& recipe, plan::ConvolutionForm const& form) {
  DataType const image = form.image().type, filter = form.image_is_a ? form.b.type : form.a.type;
  SlidingRecipe const& sliding = recipe.sliding;
  std::string const types =
      fmt::format("{}, {}, {},\n{},\nDigitDestination<{}, {}>", name_of(image), name_of(filter),
                  name_of(form.sum), epilogue_text(form), name_of(form.d.type), form.d.width);
  if (is_depthwise(recipe))
    return fmt::format("DepthwiseTraits<{},\n{}, {}, {}, {}, {}>", types, sliding.channels_last,
                       sliding.vector, sliding.taps, sliding.output_step, sliding.tap_step);
  DirectTile const& tile = sliding.tile;
  return fmt::format("DirectTiledTraits<DirectTile{{{}, {}, {}, {}, {}}}, {}, {},\n{}, {}, {}, {}>",
                     tile.rows, tile.columns, tile.filters, tile.thread_rows, tile.thread_filters,
                     plan::tile_threads(sliding), types, form.swapped, sliding.taps, sliding.output_step,
                     sliding.tap_step);
}

}  // namespace

jit::Source sliding_source(Plan<Problem> const& plan) {
  ConvolutionRecipe const& recipe = plan.recipe;
  plan::ConvolutionForm form = plan::sliding_forms(plan.problem, recipe.algorithm).front().form;
  if (!is_depthwise(recipe)) plan::narrow_runs(form, recipe.sliding.tile.thread_filters);
  char const* const name = is_depthwise(recipe) ? "depthwise" : "direct_tiled";
  std::size_t const bytes = with_epilogue_arguments(
      plan.problem, [&]<class Epilogue>(Epilogue const&) { return parameter_bytes<Epilogue>(recipe); });
  jit::Source source;
  source.text = fmt::format(
      "#include \"cosmati/conv/{}.h\"\nnamespace cosmati {{\n{}using ComposedTraits = {};\n"
      "static_assert(sizeof(ComposedTraits::Params) == {});\n"
      "static_assert(ComposedTraits::threads == {});\n}}\n",
      name, function_text(plan.problem, form), traits_text(recipe, form), bytes,
      is_depthwise(recipe) ? 128 : plan::tile_threads(recipe.sliding));
  source.name_expression = fmt::format("cosmati::{}_kernel<cosmati::ComposedTraits>", name);
  source.architecture = architecture_of(plan.device.gpu);
  source.label = form.identity ? "" : plan.problem.epilogue.expression.text();
  return source;
}

std::unique_ptr<Kernel<Problem>> prepare_sliding(Plan<Problem> const& plan, Function function) {
  return std::make_unique<SlidingConvolution>(plan, std::move(function));
}

}  // namespace cosmati::cuda
