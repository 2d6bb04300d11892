// The text of the kernels that slide windows, and their launches.
#include "src/backend/cuda/sliding_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "src/backend/cuda/convolution_epilogue.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/plan/conv/sliding.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

bool is_depthwise(ConvolutionRecipe const& recipe) {
  return recipe.algorithm == ConvolutionAlgorithm::depthwise;
}

int threads_of(ConvolutionRecipe const& recipe) {
  constexpr int depthwise_threads = 128;  // DepthwiseTraits
  return is_depthwise(recipe) ? depthwise_threads : plan::tile_threads(recipe.sliding);
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
        launches_(plan::sliding_launches(plan.problem, plan.recipe.algorithm)),
        ordinal_(plan.device.gpu.ordinal),
        function_(std::move(function)) {
    function_.allow_shared_bytes(recipe_.sliding.shared_bytes);
    plan::SlidingForm const& first = launches_.front().front();
    if (first.form.rows() == 0 || first.form.columns() == 0) launches_.clear();
    for (auto const& launch : launches_) {
      blocks_.push_back(plan::blocks_along_x(launch, recipe_));
      if (is_depthwise(recipe_)) continue;
      tiles_.emplace_back();
      for (plan::SlidingForm const& sliding : launch)  // a search for pitches, as long as some launches
        tiles_.back().push_back(plan::tile_schedule(sliding, recipe_.sliding));
    }
  }

  void enqueue(Problem::Arguments const& arguments, std::byte*, Stream stream) const override {
    Current const current(ordinal_);
    with_epilogue_arguments(problem_, [&]<class Epilogue>(Epilogue const&) {
      for (std::size_t launch = 0; launch < launches_.size(); ++launch)
        is_depthwise(recipe_)
            ? enqueue_launch<DepthwiseParameters<Epilogue, DigitArguments>>(launch, arguments, stream)
            : enqueue_launch<DirectTiledParameters<Epilogue, DigitArguments>>(launch, arguments, stream);
    });
  }

 private:
  template <class Parameters>
  void enqueue_launch(std::size_t launch, Problem::Arguments const& arguments, Stream stream) const {
    constexpr Index most_groups = 65535;
    Index const groups = launches_[launch].front().form.groups;
    if (!plan::take_turns(launches_)) {
      Parameters parameters;
      fill(parameters, launch, 0, arguments);
      for (Index first = 0; first < groups; first += most_groups) {
        set_first_group(parameters.schedule, first);
        function_.launch(grid(launch, blocks_[launch].front(), std::min(most_groups, groups - first)),
                         threads(), shared_bytes(), parameters, stream);
      }
      return;
    }
    using Places = PlacesInTurn<Parameters, plan::most_places_of<Parameters>>;
    Places places;
    int const count = static_cast<int>(launches_[launch].size());
    for (int i = 0; i < count; ++i)
      fill(places.place[i].params, launch, static_cast<std::size_t>(i), arguments);
    Index const blocks = take_turns(places, blocks_[launch].data(), count);
    // The kernel's parameters end with the places of the launch that has the most.
    std::size_t const absent = std::size(places.place) - launches_.front().size();
    std::size_t const bytes = sizeof places - absent * sizeof places.place[0];
    for (Index first = 0; first < groups; first += most_groups) {
      for (int i = 0; i < count; ++i) set_first_group(places.place[i].params.schedule, first);
      function_.launch(grid(launch, blocks, std::min(most_groups, groups - first)), threads(), shared_bytes(),
                       &places, bytes, alignof(Places), stream);
    }
  }
  template <class Parameters>
  void fill(Parameters& parameters, std::size_t launch, std::size_t place,
            Problem::Arguments const& arguments) const {
    plan::SlidingForm const& sliding = launches_[launch][place];
    plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, sliding.form, arguments);
    bool const first = sliding.form.image_is_a;
    parameters.window =
        plan::sliding_arguments(sliding, first ? pointers.a : pointers.b, first ? pointers.b : pointers.a);
    parameters.d = plan::digit_arguments(sliding.form.d, pointers.d);
    fill_epilogue(parameters.epilogue, sliding.form, arguments);
    if constexpr (std::is_same_v<decltype(parameters.schedule), DepthwiseSchedule>)
      parameters.schedule = plan::depthwise_schedule(sliding, recipe_.sliding);
    else
      parameters.schedule = tiles_[launch][place];
  }
  static void set_first_group(DepthwiseSchedule&, Index) {}  // of all channels at once
  static void set_first_group(DirectTileSchedule& schedule, Index first) { schedule.first_group = first; }

  Blocks grid(std::size_t launch, Index blocks, Index groups) const {
    plan::SlidingForm const& sliding = launches_[launch].front();
    Index const y = is_depthwise(recipe_) ? 1 : plan::tile_grid(sliding, recipe_.sliding).y;
    return {static_cast<unsigned>(blocks), static_cast<unsigned>(y), static_cast<unsigned>(groups)};
  }
  unsigned threads() const { return static_cast<unsigned>(threads_of(recipe_)); }
  unsigned shared_bytes() const { return static_cast<unsigned>(recipe_.sliding.shared_bytes); }

  Problem problem_;
  ConvolutionRecipe recipe_;
  plan::SlidingLaunches launches_;                      // none: there is no result
  std::vector<std::vector<Index>> blocks_;              // of each launch's places, along x
  std::vector<std::vector<DirectTileSchedule>> tiles_;  // of direct_tiled
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
    return fmt::format("DepthwiseTraits<{},\n{}, {}, {}, {}, {}, {}>", types, sliding.channels_last,
                       sliding.vector, sliding.taps, sliding.output_step, sliding.tap_step, sliding.uneven);
  DirectTile const& tile = sliding.tile;
  return fmt::format("DirectTiledTraits<DirectTile{{{}, {}, {}, {}, {}}}, {}, {},\n{}, {}, {}, {}, {}>",
                     tile.rows, tile.columns, tile.filters, tile.thread_rows, tile.thread_filters,
                     plan::tile_threads(sliding), types, form.swapped, sliding.taps, sliding.output_step,
                     sliding.tap_step, sliding.uneven);
}

}  // namespace

jit::Source sliding_source(Plan<Problem> const& plan) {
  ConvolutionRecipe const& recipe = plan.recipe;
  plan::SlidingLaunches const launches = plan::sliding_launches(plan.problem, recipe.algorithm);
  plan::ConvolutionForm form = launches.front().front().form;
  if (!is_depthwise(recipe)) plan::narrow_runs(form, recipe.sliding.tile.thread_filters);
  char const* const name = is_depthwise(recipe) ? "depthwise" : "direct_tiled";
  std::size_t const bytes = with_epilogue_arguments(
      plan.problem, [&]<class Epilogue>(Epilogue const&) { return parameter_bytes<Epilogue>(recipe); });
  jit::Source source;
  source.text = fmt::format(
      "#include \"cosmati/conv/{}.h\"\nnamespace cosmati {{\n{}using ComposedTraits = {};\n"
      "static_assert(sizeof(ComposedTraits::Params) == {});\n"
      "static_assert(ComposedTraits::threads == {});\n}}\n",
      name, function_text(plan.problem, form), traits_text(recipe, form), bytes, threads_of(recipe));
  source.name_expression = plan::take_turns(launches)
                               ? fmt::format("cosmati::{}_of_places_kernel<cosmati::ComposedTraits, {}>",
                                             name, launches.front().size())
                               : fmt::format("cosmati::{}_kernel<cosmati::ComposedTraits>", name);
  source.architecture = architecture_of(plan.device.gpu);
  source.label = form.identity ? "" : plan.problem.epilogue.expression.text();
  return source;
}

std::unique_ptr<Kernel<Problem>> prepare_sliding(Plan<Problem> const& plan, Function function) {
  return std::make_unique<SlidingConvolution>(plan, std::move(function));
}

}  // namespace cosmati::cuda
