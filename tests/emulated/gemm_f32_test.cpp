// f32 products by both main loops: every direction and width of runs, partial and full tiles, split-K,
// batches.
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

constexpr Size ragged[] = {{1, 1, 1},   {1, 33, 7},   {37, 1, 41}, {33, 35, 0},
                           {32, 32, 8}, {65, 31, 67}, {0, 5, 3},   {5, 0, 3}};

template <MainLoop main_loop, Along a, Along b, int width>
void expect_products() {
  using Gemm = PlainGemm<small_policy(main_loop), float, float, a, b, width, float, width>;
  for (Size const& size : ragged) expect_product<Gemm>(size);
  expect_product<Gemm>({33, 34, 35}, {.misaligned = width == 1});
}

template <MainLoop main_loop, int width>
void expect_layouts() {
  expect_products<main_loop, Along::mn, Along::mn, width>();
  expect_products<main_loop, Along::mn, Along::k, width>();
  expect_products<main_loop, Along::k, Along::mn, width>();
  expect_products<main_loop, Along::k, Along::k, width>();
}

TEST(EmulatedGemmF32, DoubleBufferedTakesEveryLayoutByFour) {
  expect_layouts<MainLoop::double_buffered, 4>();
}
TEST(EmulatedGemmF32, DoubleBufferedTakesEveryLayoutByTwo) { expect_layouts<MainLoop::double_buffered, 2>(); }
TEST(EmulatedGemmF32, DoubleBufferedTakesEveryLayoutByOne) { expect_layouts<MainLoop::double_buffered, 1>(); }
TEST(EmulatedGemmF32, MultistageTakesEveryLayoutByFour) { expect_layouts<MainLoop::multistage, 4>(); }
TEST(EmulatedGemmF32, MultistageTakesEveryLayoutByTwo) { expect_layouts<MainLoop::multistage, 2>(); }
TEST(EmulatedGemmF32, MultistageTakesEveryLayoutByOne) { expect_layouts<MainLoop::multistage, 1>(); }

template <MainLoop main_loop>
void expect_whole() {
  constexpr GemmPolicy policy = [] {
    GemmPolicy p = small_policy(main_loop);
    p.full_tiles = true;
    return p;
  }();
  expect_product<PlainGemm<policy, float, float, Along::mn, Along::k, 4>>({64, 96, 24});
}
TEST(EmulatedGemmF32, WholeTilesNeedNoPredicates) {
  expect_whole<MainLoop::double_buffered>();
  expect_whole<MainLoop::multistage>();
}

template <MainLoop main_loop>
void expect_splits() {
  using Gemm = PlainGemm<small_policy(main_loop, Multiply::fma, true), float, float, Along::k, Along::mn, 1>;
  for (int splits : {1, 2, 3, 7}) {
    expect_product<Gemm>({33, 65, 51}, {.splits = splits});
    expect_product<Gemm>({20, 20, 20}, {.batch = 3, .splits = splits});
  }
}
TEST(EmulatedGemmF32, PartsOfKAddUp) {
  expect_splits<MainLoop::double_buffered>();
  expect_splits<MainLoop::multistage>();
}

TEST(EmulatedGemmF32, BatchesByStrideAndByPointers) {
  using Gemm = PlainGemm<small_policy(MainLoop::double_buffered), float, float, Along::k, Along::k, 1>;
  expect_product<Gemm>({9, 35, 11}, {.batch = 4});
  expect_product<Gemm>({9, 35, 11}, {.batch = 4, .pointer_array = true});
}

TEST(EmulatedGemmF32, RastersVisitEveryTileOnce) {
  for (Raster raster : {Raster::along_m, Raster::along_n})
    for (int width : {1, 2, 3, 8})
      for (int tiles_m : {1, 2, 5})
        for (int tiles_n : {1, 3, 7}) {
          std::vector<int> hits(static_cast<std::size_t>(tiles_m * tiles_n));
          for (int i = 0; i < tiles_m * tiles_n; ++i) {
            TileIndex const tile = raster_tile(raster, width, tiles_m, tiles_n, i);
            ++hits.at(static_cast<std::size_t>(tile.m * tiles_n + tile.n));
          }
          EXPECT_EQ(hits, std::vector<int>(hits.size(), 1));
        }
}

TEST(EmulatedGemmF32, PartsOfStepsCoverAll) {
  for (int steps : {0, 1, 5, 16, 17})
    for (int parts : {1, 2, 3, 8}) {
      int next = 0;
      for (int part = 0; part < parts; ++part) {
        StepRange const range = part_of_steps(steps, part, parts);
        EXPECT_EQ(range.first, next);
        EXPECT_LE(range.last - range.first, (steps + parts - 1) / parts);
        next = range.last;
      }
      EXPECT_EQ(next, steps);
    }
}

// A tile of many warps, as on a device.
TEST(EmulatedGemmF32, LargePolicies) {
  constexpr GemmPolicy large{.block_m = 128, .block_n = 128, .block_k = 8, .warp_m = 32, .warp_n = 64};
  constexpr GemmPolicy huge{.block_m = 256,
                            .block_n = 128,
                            .block_k = 8,
                            .warp_m = 64,
                            .warp_n = 64,
                            .thread_m = 16,
                            .stages = 4,
                            .main_loop = MainLoop::multistage};
  expect_product<PlainGemm<large, float, float, Along::mn, Along::k, 4>>({129, 140, 20});
  expect_product<PlainGemm<huge, float, float, Along::k, Along::mn, 4>>({260, 100, 44});
}

}  // namespace
}  // namespace cosmati::emulated
