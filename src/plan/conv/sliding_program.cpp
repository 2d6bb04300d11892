// The programs of direct_tiled and depthwise: one launch per list of phases.
#include <fmt/format.h>

#include <memory>
#include <type_traits>

#include "src/plan/conv/sliding.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int depthwise_threads = 128;  // DepthwiseTraits

// One launch. The schedule of each phase is computed once, because the search for pitches takes as long as
// some launches.
template <class Schedule>
struct SlidingLaunch {
  std::vector<SlidingForm> forms;
  std::vector<Schedule> schedules;
  std::vector<Index> blocks;
  KernelOperand image, filter;

  template <class Parameters>
  void fill(std::size_t phase, program::Run const& run, Index first_group, Parameters& to) const {
    SlidingForm const& sliding = forms[phase];
    to.window = sliding_arguments(sliding, image.of(run), filter.of(run));
    fill_destination(to.d, sliding.form.d, ConvolutionProgram::result(run));
    fill_epilogue(to.epilogue, sliding.form, run);
    to.schedule = schedules[phase];
    if constexpr (requires { to.schedule.first_group; }) to.schedule.first_group = first_group;
  }
};

// `grid.x` is set here; the other extents are those of the launch.
template <class Parameters, class Schedule>
void add_launch(ConvolutionProgram& made, std::size_t kernel, program::Grid grid, std::size_t max_phases,
                SlidingLaunch<Schedule> const& launch) {
  if (max_phases == 0) {
    grid.x = launch.blocks.front();
    made.launch_groups<Parameters>(kernel, grid,
                                   [launch](program::Run const& run, Index first_group, Parameters& to) {
                                     launch.fill(0, run, first_group, to);
                                   });
    return;
  }
  constexpr bool on_host = requires(Parameters p) { p.epilogue.expression; };
  using Phases = PhasesInTurn<Parameters, on_host ? max_phases_in_turn : max_phases_of<Parameters>>;
  int const count = static_cast<int>(launch.forms.size());
  grid.x = take_turns(*std::make_unique<Phases>(), launch.blocks.data(), count);
  // Passes only as many entries of the parameter array as the launch with the most phases has.
  std::size_t const absent = std::extent_v<decltype(Phases::phase)> - max_phases;
  made.launch_groups<Phases>(
      kernel, grid,
      [launch, count](program::Run const& run, Index first_group, Phases& to) {
        take_turns(to, launch.blocks.data(), count);
        for (std::size_t i = 0; i < launch.forms.size(); ++i)
          launch.fill(i, run, first_group, to.phase[i].params);
      },
      sizeof(Phases) - absent * sizeof(typename Phases::Phase));
}

}  // namespace

std::string initializer(KnownAxis const& axis) {
  return fmt::format("{{.taps = {}, .output_step = {}, .tap_step = {}, .uneven = {}}}", axis.taps,
                     axis.output_step, axis.tap_step, axis.uneven);
}

std::string traits_of(DepthwisePolicy const& policy, KernelTypes const& types) {
  return fmt::format(
      "DepthwiseTraits<DepthwisePolicy{{.channels_last = {}, .vector = {},\n.axis = {}}},\n{}>",
      policy.channels_last, policy.vector, initializer(policy.axis), types.print());
}

std::string traits_of(DirectTiledPolicy const& policy, KernelTypes const& types) {
  DirectTile const& tile = policy.tile;
  return fmt::format(
      "DirectTiledTraits<DirectTiledPolicy{{\n"
      ".tile = {{.rows = {}, .columns = {}, .filters = {}, .thread_rows = {}, .thread_filters = {}}},\n"
      ".threads = {}, .swapped = {}, .rows = {}}},\n{}>",
      tile.rows, tile.columns, tile.filters, tile.thread_rows, tile.thread_filters, policy.threads,
      policy.swapped, initializer(policy.rows), types.print());
}

program::Program sliding_program(Plan<Problem> const& plan) {
  auto const* const tiled = std::get_if<DirectTiledRecipe>(&plan.recipe.own);
  auto const* const by_channel = std::get_if<DepthwiseRecipe>(&plan.recipe.own);
  SlidingLaunches const launches = sliding_launches(plan.problem, plan.recipe.algorithm);
  ConvolutionProgram made(plan);
  // The emulator has only the kernels for several phases, compiled for the maximum of a launch.
  std::size_t const max_phases = made.is_emulated()     ? std::size_t{max_phases_in_turn}
                                 : take_turns(launches) ? launches.front().size()
                                                        : 0;
  ConvolutionForm form = launches.front().front().form;
  if (tiled != nullptr) narrow_runs(form, tiled->tile.thread_filters);
  KernelTypes const types = made.types_of(form);
  int const threads = tiled == nullptr     ? depthwise_threads
                      : made.is_emulated() ? emulated_direct_threads
                                           : tile_threads(*tiled);
  std::string const name = tiled == nullptr ? "depthwise" : "direct_tiled";
  program::KernelSpec const kernel{
      .headers = {"conv/" + name + ".h"},
      .entry = name + (max_phases > 0 ? "_of_phases_kernel" : "_kernel"),
      .traits = tiled == nullptr ? traits_of(DepthwisePolicy{.channels_last = by_channel->channels_last,
                                                             .vector = by_channel->vector,
                                                             .axis = by_channel->axis},
                                             types)
                                 : traits_of(DirectTiledPolicy{.tile = tiled->tile,
                                                               .threads = threads,
                                                               .swapped = form.swapped,
                                                               .rows = tiled->rows},
                                             types),
      .phases = static_cast<int>(max_phases),
      .asserted = {{"ComposedTraits::threads", threads}},
      .threads = static_cast<unsigned>(threads),
      .shared_bytes =
          static_cast<unsigned>(tiled == nullptr ? by_channel->shared_bytes : tiled->shared_bytes)};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    auto const add = [&]<class Parameters>(std::type_identity<Parameters>, auto const& recipe,
                                           auto make_schedule) {
      std::size_t const number = made.add_kernel<Parameters>(kernel, form);
      if (form.rows() == 0 || form.columns() == 0) return;
      for (auto const& forms : launches) {
        SlidingLaunch<decltype(Parameters::schedule)> launch;
        launch.blocks = blocks_along_x(forms, plan.recipe);
        launch.image = made.image, launch.filter = made.filter;
        for (SlidingForm sliding : forms) {
          launch.schedules.push_back(make_schedule(sliding, recipe));
          sliding.form = made.in_kernel(sliding.form);
          launch.forms.push_back(std::move(sliding));
        }
        Index const y = tiled == nullptr ? 1 : tile_grid(forms.front(), *tiled).y;
        add_launch<Parameters>(made, number, {1, y, form.groups}, max_phases, launch);
      }
    };
    if (tiled == nullptr)
      add(std::type_identity<DepthwiseParameters<Epilogue, Destination>>{}, *by_channel, depthwise_schedule);
    else
      add(std::type_identity<DirectTiledParameters<Epilogue, Destination>>{}, *tiled, tile_schedule);
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
