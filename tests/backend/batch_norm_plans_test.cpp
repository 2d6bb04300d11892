// The kernels chosen for batch normalizations: for f32 and 16-bit types none falls back to the reference's
// loops.
#include <gtest/gtest.h>

#include <string>

#include "cosmati/ops/normalization.h"
#include "cosmati/ops/processor.h"

namespace cosmati {
namespace {

// A dense layout of dimensions (n, c, spatial...): channels after the images, channels innermost, or channels
// outermost with the images innermost.
Layout arranged(Shape const& shape, char const* format) {
  int order[max_rank] = {};  // slowest to fastest
  int next = 0;
  std::string const name = format;
  if (name != "chwn") order[next++] = 0;
  if (name != "nhwc") order[next++] = 1;
  for (int d = 2; d < shape.rank; ++d) order[next++] = d;
  if (name == "nhwc") order[next++] = 1;
  if (name == "chwn") order[next++] = 0;
  Layout layout = row_major(shape);
  Index step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    layout.stride[order[i]] = step;
    step *= shape[order[i]];
  }
  return layout;
}

TEST(BatchNormPlans, NoneOfFewerBitsThanDoubleIsComputedByTheReference) {
  Device const here = this_device(Backend::cpu, 2);
  if (!here.onednn) GTEST_SKIP() << "oneDNN is not here, without which there is the reference alone";
  for (DataType const type : {DataType::f32, DataType::bf16, DataType::f16})
    for (char const* format : {"nchw", "nhwc", "chwn"})
      for (Shape const& shape :
           {Shape{8, 3}, Shape{8, 64}, Shape{8, 3, 17}, Shape{8, 3, 5, 7}, Shape{16, 64, 8, 8},
            Shape{8, 3, 4, 5, 6}, Shape{8, 9, 1, 1, 9}, Shape{8, 9, 5, 1, 1}, Shape{8, 9, 1, 1},
            Shape{8, 1, 5, 7}, Shape{1, 9, 1, 7}, Shape{1, 1, 1, 1}, Shape{8, 9, 1}, Shape{8, 1},
            Shape{1, 9}})
        for (auto const mode : {BatchNormMode::inference, BatchNormMode::training, BatchNormMode::backward})
          for (Index const gap : {0, 3}) {
            BatchNormProblem problem;
            problem.mode = mode;
            problem.x = describe(type, arranged(shape, format));
            for (int d = 0; gap > 0 && d < shape.rank; ++d)
              if (problem.x.layout.stride[d] > 1) problem.x.layout.stride[d] *= gap;
            problem.y = problem.x;
            if (mode == BatchNormMode::backward) problem.dx = problem.x;
            problem.statistics = describe(DataType::f32, Shape{shape[1]});
            EXPECT_NE(make_plan(problem, here).kernel, "reference")
                << to_string(problem.x) << ", mode " << static_cast<int>(mode);
          }
}

TEST(BatchNormPlans, AnActivationIsAnOperationOfItsOwn) {
  Device const here = this_device(Backend::cpu, 2);
  BatchNormProblem problem;
  problem.mode = BatchNormMode::training;
  problem.x = problem.y = describe(DataType::f32, Shape{8, 3, 5, 7});
  problem.statistics = describe(DataType::f32, Shape{3});
  problem.slope = 0.2;
  auto const plan = make_plan(problem, here);
  EXPECT_EQ(plan.kernel, "batch_norm_then_activation");
  EXPECT_NE(
      explain(plan.considered, plan.kernel).find("the slope is 0.2; our plans for oneDNN support only 1"),
      std::string::npos);
}

}  // namespace
}  // namespace cosmati
