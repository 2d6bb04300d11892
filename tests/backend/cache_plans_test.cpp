// Plans for processors with different second-level caches. Nothing here depends on the processor that runs
// the test.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/processor.h"

namespace cosmati {
namespace {

Device with_second_cache(char const* processor, long long bytes) {
  Device device = describe_processor(processor, 2);
  device.l2_bytes = bytes;
  return device;
}

// 3x3 filters of 64 channels in f64: a column of the im2col matrix has 576 elements.
std::size_t im2col_workspace(Device const& device) {
  ConvolutionProblem problem;
  problem.x = describe(DataType::f64, {1, 64, 58, 58});
  problem.w = describe(DataType::f64, {8, 64, 3, 3});
  problem.y = describe(DataType::f64, {1, 8, 56, 56});
  return make_plan(problem, device, {.kernel = "im2col_f64"}).workspace_bytes;
}

TEST(CachePlans, SlicesOfIm2colFitTheSecondCache) {
  Device const laptop = describe_processor("avx2-laptop", 2);
  if (!laptop.openblas) GTEST_SKIP() << "OpenBLAS is not here, without which there is no im2col_f64";
  std::size_t const whole = im2col_workspace(with_second_cache("avx2-laptop", 1 << 20));
  // Each of two threads has a slice of as many columns as fit.
  auto const slices = [](Index cache) { return std::size_t(2 * (cache / 8 / 576) * 576 * 8); };
  EXPECT_EQ(whole - im2col_workspace(laptop), slices(1 << 20) - slices(512 << 10));
  EXPECT_EQ(whole - im2col_workspace(with_second_cache("avx2-laptop", 256 << 10)),
            slices(1 << 20) - slices(256 << 10));
  // An unknown cache counts as 1 MiB; larger caches were not measured and count as 1 MiB, too.
  EXPECT_EQ(im2col_workspace(with_second_cache("avx2-laptop", 0)), whole);
  EXPECT_EQ(im2col_workspace(with_second_cache("avx2-laptop", 4 << 20)), whole);
  EXPECT_EQ(im2col_workspace(describe_processor("64-core-server", 2)), whole);
}

TEST(CachePlans, SumsOfATileFitTheSecondCache) {
  if (!describe_processor("avx512-server").onednn) GTEST_SKIP() << "oneDNN is not here";
  GemmProblem problem;
  problem.a = describe(DataType::f32, {1, 2048, 256});
  problem.b = describe(DataType::f32, {1, 256, 4096});
  problem.c = problem.d = describe(DataType::f32, {1, 2048, 4096});
  problem.epilogue = {epilogue::parse("gelu(acc) + c"), {}, {}};
  auto const workspace = [&problem](long long cache) {
    return make_plan(problem, with_second_cache("avx512-server", cache), {.kernel = "onednn_tiled"})
        .workspace_bytes;
  };
  std::size_t const large = workspace(1 << 20);
  EXPECT_EQ(workspace(0), large);
  EXPECT_LT(workspace(512 << 10), large);
  EXPECT_LT(workspace(256 << 10), workspace(512 << 10));
  EXPECT_EQ(workspace(16 << 10), workspace(128 << 10));  // the smallest tiles fit any cache
}

}  // namespace
}  // namespace cosmati
