// Average pooling of arrays aligned only to their element size. CTest runs this once more for each
// instruction set of oneDNN, whose pooling crashed with SSE4.1.
#include <gtest/gtest.h>

#include <vector>

#include "cosmati/ops/pooling.h"
#include "cosmati/ops/processor.h"
#include "tests/support/promise.h"

namespace cosmati {
namespace {

PoolingProblem average(Direction direction, TensorFormat format, Index channels, Index window) {
  PoolingProblem p;
  p.mode = PoolingMode::average;
  p.direction = direction;
  p.window[0] = p.window[1] = window;
  p.stride[0] = p.stride[1] = 2;
  p.x = describe(DataType::f32, image_layout(format, 2, channels, 9, 9));
  Index const extent = (9 - window) / 2 + 1;
  p.y = describe(DataType::f32, image_layout(format, 2, channels, extent, extent));
  return testing::unaligned(p);
}

// The result for arrays that begin `offset` floats after a multiple of 64 bytes.
std::vector<float> result_of(PoolingProblem const& p, Device const& device, std::size_t offset) {
  bool const forward = p.direction == Direction::forward;
  Index const from = forward ? p.x.layout.size() : p.y.layout.size();
  Index const to = forward ? p.y.layout.size() : p.x.layout.size();
  Tensor given(DataType::f32, Shape{from + 16}), result(DataType::f32, Shape{to + 16});
  for (Index i = 0; i < from; ++i)
    given.as<float>()[i + static_cast<Index>(offset)] = static_cast<float>(i % 11 - 5);
  auto const prepared = prepare(make_plan(p, device));
  Tensor workspace(DataType::u8, Shape{static_cast<Index>(prepared.workspace_bytes())});
  PoolingProblem::Arguments arguments;
  (forward ? arguments.x : arguments.dy) = given.as<float>() + offset;
  (forward ? arguments.y : arguments.dx) = result.as<float>() + offset;
  prepared.run(arguments, workspace.data());
  float const* const first = result.as<float>() + offset;
  return {first, first + to};
}

TEST(Instructions, AveragesOfArraysThatLieAnywhere) {
  for (Direction const direction : {Direction::forward, Direction::backward})
    for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
      for (Index const channels : {1, 3, 4, 8, 16, 17})
        for (Index const window : {2, 3})
          for (std::size_t offset = 0; offset < 3; ++offset) {
            PoolingProblem const p = average(direction, format, channels, window);
            auto const got = result_of(p, this_device(Backend::cpu, 2), offset);
            auto const wanted = result_of(p, this_device(Backend::reference, 1), 0);
            ASSERT_EQ(got.size(), wanted.size());
            for (std::size_t i = 0; i < got.size(); ++i)
              ASSERT_NEAR(got[i], wanted[i], 1e-5) << to_string(p.x) << " offset " << offset;
          }
}

TEST(Instructions, PoolingOfUnalignedArraysIsRefusedWithoutAvx) {
  Device const old = describe_processor("sse2-only");
  if (!old.onednn) GTEST_SKIP() << "oneDNN is not here";
  auto const plan = make_plan(average(Direction::backward, TensorFormat::nhwc, 8, 2), old);
  EXPECT_NE(plan.kernel, "onednn");
  for (auto const& candidate : plan.considered)
    if (candidate.kernel == "onednn") {
      EXPECT_EQ(candidate.refusal, "dy declares an alignment of 4 bytes; without AVX oneDNN needs 16");
    }
}

}  // namespace
}  // namespace cosmati
