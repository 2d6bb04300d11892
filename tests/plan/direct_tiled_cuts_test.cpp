// Kernels of direct_tiled with the tiles that the planner chooses for a GPU, which the emulator's catalogue
// cannot contain: several images, seven rows of six filters per thread, five taps, channels in several
// rounds.
#include <gtest/gtest.h>

#include "cosmati/conv/direct_tiled.h"
#include "cosmati/conv/wgrad_direct.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/conv/launch.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

using Epilogue = emulator::ConvolutionHostEpilogue;
using Destination = emulator::ConvolutionHostDestination;
using Problem = ConvolutionProblem;

constexpr unsigned shared_bytes = 160 * 1024;

emulator::Grid as_grid(plan::SlidingGrid const& grid) {
  return {static_cast<int>(grid.x), static_cast<int>(grid.y), static_cast<int>(grid.z)};
}

// Operands as in `run` of convolution_cases.h; `launch` writes to the addresses in `arguments`.
template <class Launch>
void expect_same(Problem const& p, Launch const& launch) {
  Tensor const x = filled(p.x, 1), w = filled(p.w, 2), dy = filled(p.y, 3);
  bool const forward = p.direction == ConvolutionDirection::forward,
             data = p.direction == ConvolutionDirection::data;
  Tensor result = filled(forward ? p.y : data ? p.x : p.w, 9);
  Problem::Arguments arguments;
  arguments.x = x.data(), arguments.w = w.data(), arguments.dy = dy.data();
  (forward ? arguments.y : data ? arguments.dx : arguments.dw) = result.data();
  launch(arguments);
  Computed const expected = run(p, this_device(Backend::reference), "", "");
  for (Index i = 0; i < result.layout().span(); ++i)
    ASSERT_EQ(load(result.type(), result.data(), i), load(result.type(), expected.result.data(), i)) << i;
}

template <DirectTile tile, int threads, int taps, int output_step, bool swapped>
void expect_tiles(Problem const& p, int images, int channels) {
  DirectTiledRecipe recipe;
  recipe.tile = tile, recipe.images = images, recipe.channels = channels;
  recipe.rows.taps = taps, recipe.rows.output_step = output_step;
  expect_same(p, [&](Problem::Arguments const& arguments) {
    for (plan::SlidingForm const& sliding : plan::sliding_forms(p, ConvolutionAlgorithm::direct_tiled)) {
      constexpr int tap_step = 1;
      bool const forward = sliding.window.rows.tap_step > 0;
      recipe.rows.tap_step = forward ? tap_step : -tap_step;
      ASSERT_EQ(sliding.form.swapped, swapped);
      ASSERT_EQ(plan::tile_threads(recipe), threads);
      plan::ConvolutionPointers const pointers = plan::pointers_of(p, sliding.form, arguments);
      bool const first = sliding.form.image_is_a;
      DirectTiledParameters<Epilogue::Arguments, Destination::Arguments> const parameters{
          plan::sliding_arguments(sliding, first ? pointers.a : pointers.b, first ? pointers.b : pointers.a),
          {plan::digit_arguments(sliding.form.d, pointers.d), sliding.form.d.type},
          {nullptr, &sliding.form},
          plan::tile_schedule(sliding, recipe)};
      auto const launch = [&]<int step>(std::integral_constant<int, step>) {
        constexpr DirectTiledPolicy policy{tile, threads, swapped, {taps, output_step, step}};
        using Traits = DirectTiledTraits<policy, f32, f32, f32, Epilogue, Destination>;
        emulator::launch_kernel<&direct_tiled_kernel<Traits>>(as_grid(plan::tile_grid(sliding, recipe)),
                                                              threads, shared_bytes, parameters, 2);
      };
      forward ? launch(std::integral_constant<int, tap_step>())
              : launch(std::integral_constant<int, -tap_step>());
    }
  });
}

// All phases of a strided data gradient in one launch of a kernel that supports both numbers of taps.
template <DirectTile tile, int threads, int taps, bool swapped>
void expect_phases(Problem const& p, int images, int channels) {
  ConvolutionRecipe recipe;
  recipe.algorithm = ConvolutionAlgorithm::direct_tiled;
  DirectTiledRecipe& own = recipe.own.emplace<DirectTiledRecipe>();
  own.tile = tile, own.images = images, own.channels = channels;
  own.rows = {taps, 1, -1, true};
  plan::SlidingLaunches const launches = plan::sliding_launches(p, recipe.algorithm);
  ASSERT_EQ(launches.size(), 1u);
  expect_same(p, [&](Problem::Arguments const& arguments) {
    constexpr DirectTiledPolicy policy{tile, threads, swapped, {taps, 1, -1, true}};
    using Traits = DirectTiledTraits<policy, f32, f32, f32, Epilogue, Destination>;
    PhasesInTurn<typename Traits::Params, 4> phases;
    int count = 0;
    for (plan::SlidingForm const& sliding : launches.front()) {
      ASSERT_EQ(sliding.form.swapped, swapped);
      plan::ConvolutionPointers const pointers = plan::pointers_of(p, sliding.form, arguments);
      bool const first = sliding.form.image_is_a;
      phases.phase[count++].params = {
          plan::sliding_arguments(sliding, first ? pointers.a : pointers.b, first ? pointers.b : pointers.a),
          {plan::digit_arguments(sliding.form.d, pointers.d), sliding.form.d.type},
          {nullptr, &sliding.form},
          plan::tile_schedule(sliding, own)};
    }
    plan::SlidingGrid grid = plan::tile_grid(launches.front().front(), own);
    grid.x = take_turns(phases, plan::blocks_along_x(launches.front(), recipe).data(), count);
    emulator::launch_kernel<&direct_tiled_of_phases_kernel<Traits, 4>>(as_grid(grid), threads, shared_bytes,
                                                                       phases, 2);
  });
}

struct FilterCut {
  int rows, filters, images, blocks;
  int segment = 0;  // 0: a row
};
template <int log2_threads, int run, int filters, int taps, bool swapped>
void expect_filters(Problem const& p, FilterCut const& cut) {
  WgradDirectRecipe recipe;
  recipe.log2_threads = log2_threads, recipe.rows = cut.rows, recipe.filters = cut.filters;
  recipe.run = run, recipe.thread_filters = filters;
  recipe.segment = cut.segment > 0 ? cut.segment : static_cast<int>(p.y.extent(3));
  recipe.images = cut.images, recipe.blocks = cut.blocks, recipe.columns.taps = taps;
  plan::WgradDirectForm const gradient = plan::wgrad_direct_form(p);
  ASSERT_EQ(gradient.form.image_is_a, swapped);
  Tensor db = filled(describe(DataType::f32, {p.y.extent(1)}), 9);
  Tensor partials(DataType::f32, Shape(1 << 20));
  expect_same(p, [&](Problem::Arguments const& arguments) {
    WgradDirectParameters<Epilogue::Arguments, Destination::Arguments> parameters;
    plan::fill_wgrad_direct(parameters, gradient, recipe, arguments.x, arguments.dy, partials.data(),
                            db.data(), 1);
    parameters.d = {plan::digit_arguments(gradient.form.d, arguments.dw), gradient.form.d.type};
    parameters.epilogue = {nullptr, &gradient.form};
    constexpr WgradDirectPolicy policy{
        .threads = 1 << log2_threads, .run = run, .filters = filters, .swapped = swapped, .taps = taps};
    using Traits = WgradDirectTraits<policy, f32, f32, f32, Epilogue, Destination>;
    emulator::launch_kernel<&wgrad_direct_kernel<Traits>>(as_grid(plan::wgrad_direct_grid(gradient, recipe)),
                                                          Traits::threads, shared_bytes, parameters, 2);
    emulator::launch_kernel<&wgrad_direct_sum_kernel<Traits>>(
        as_grid(plan::wgrad_direct_sum_grid(gradient, parameters.schedule)), Traits::sum_threads,
        sizeof(typename Traits::SumStorage), parameters, 2);
  });
  Tensor const dy = filled(p.y, 3);
  for (Index k = 0; k < p.y.extent(1); ++k) {
    double sum = 0;
    for (Index n = 0; n < p.y.extent(0); ++n)
      for (Index i = 0; i < p.y.extent(2); ++i)
        for (Index j = 0; j < p.y.extent(3); ++j)
          sum += load(p.y.type, dy.data(), dy.layout().offset(n, k, i, j));
    ASSERT_EQ(load(db.type(), db.data(), k), sum) << k;
  }
}

Geometry first_layer(Index images) {
  Geometry layer;
  layer.n = images, layer.c = 1, layer.k = 6, layer.r = layer.s = 5, layer.h = layer.w = 28;
  layer.pad_begin[0] = layer.pad_begin[1] = layer.pad_end[0] = layer.pad_end[1] = 2;
  return layer;
}
Geometry second_layer(Index images) {
  Geometry layer;
  layer.n = images, layer.c = 6, layer.k = 16, layer.r = layer.s = 5, layer.h = layer.w = 14;
  return layer;
}
Problem nchw(ConvolutionDirection direction, Geometry const& layer) {
  return problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nchw, layer);
}

TEST(DirectTiledCuts, Forward) {
  expect_tiles<DirectTile{28, 28, 6, 7, 6}, 224, 5, 1, true>(
      nchw(ConvolutionDirection::forward, first_layer(3)), 2, 1);
  expect_tiles<DirectTile{3, 28, 6, 3, 1}, 192, 5, 1, true>(
      nchw(ConvolutionDirection::forward, first_layer(2)), 1, 1);
  expect_tiles<DirectTile{10, 10, 16, 5, 8}, 128, 5, 1, true>(
      nchw(ConvolutionDirection::forward, second_layer(4)), 3, 6);
  expect_tiles<DirectTile{10, 10, 4, 1, 2}, 224, 5, 1, true>(
      nchw(ConvolutionDirection::forward, second_layer(2)), 1, 4);
}

TEST(DirectTiledCuts, DataGradient) {
  expect_tiles<DirectTile{14, 14, 6, 7, 6}, 128, 5, 1, true>(
      nchw(ConvolutionDirection::data, second_layer(5)), 4, 16);
  expect_tiles<DirectTile{15, 14, 6, 5, 2}, 256, 5, 1, true>(
      nchw(ConvolutionDirection::data, second_layer(3)), 2, 5);
}

// The last layer of a DCGAN generator, and one with odd extents: a phase has 3 or 2 of 5 taps per dimension.
TEST(DirectTiledCuts, Phases) {
  Geometry generator;
  generator.n = 3, generator.c = 3, generator.k = 5, generator.r = generator.s = 5;
  generator.h = generator.w = 32, generator.stride[0] = generator.stride[1] = 2;
  generator.pad_begin[0] = generator.pad_begin[1] = 1, generator.pad_end[0] = generator.pad_end[1] = 2;
  Geometry odd = generator;
  odd.h = 27, odd.w = 29, odd.pad_begin[1] = 3;
  for (Geometry const& layer : {generator, odd}) {
    Problem const p = nchw(ConvolutionDirection::data, layer);
    expect_phases<DirectTile{16, 16, 3, 8, 3}, 64, 3, false>(p, 2, 2);
    expect_phases<DirectTile{4, 16, 3, 4, 1}, 64, 3, false>(p, 1, 5);
  }
}

TEST(DirectTiledCuts, FilterGradient) {
  Problem const first = nchw(ConvolutionDirection::filter, first_layer(7)),
                second = nchw(ConvolutionDirection::filter, second_layer(7));
  constexpr bool swapped = false;
  expect_filters<8, 14, 3, 5, swapped>(first, {28, 6, 2, 3});
  expect_filters<7, 14, 1, 5, swapped>(first, {4, 6, 1, 21, 14});
  expect_filters<7, 10, 8, 5, swapped>(second, {10, 16, 3, 2});
  expect_filters<9, 10, 6, 5, swapped>(second, {5, 18, 1, 14});
  expect_filters<8, 4, 4, 5, swapped>(second, {3, 16, 1, 5, 4});
}

}  // namespace
}  // namespace cosmati
