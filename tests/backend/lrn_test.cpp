// Local response normalization of data with mixed magnitudes: each window is summed separately.
#include <limits>

#include "cosmati/ops/normalization.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

LrnProblem lrn_problem(Direction direction, DataType type, Layout const& layout) {
  LrnProblem p;
  p.direction = direction;
  p.x = p.y = describe(type, layout);
  if (direction == Direction::backward) p.dx = p.x;
  return p;
}

void expect_right(test::Trial<LrnProblem>& trial) {
  trial.expect_fast_and_close(this_device(Backend::cpu, 2),
                              {.relative = 2e-5, .absolute = 2e-5, .uses_magnitude = false});
}

TEST(Lrn, OneLargeValueChangesOnlyTheWindowsThatHoldIt) {
  LrnProblem const p = lrn_problem(Direction::forward, DataType::f32, row_major(Shape{1, 16, 1, 1}));
  test::Trial trial(p, 1);
  for (Index i = 0; i < 16; ++i) trial.input("x").set(i, i == 0 ? 1e7 : 1);
  auto outputs = trial.run(prepare(make_plan(p, this_device(Backend::cpu, 2))));
  for (Index i = 3; i < 16; ++i) EXPECT_NEAR(outputs.at("y")->get(i), 0.9999, 1e-4) << "channel " << i;
}

TEST(Lrn, MixedMagnitudesInEveryLayout) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  unsigned seed = 0;
  for (Direction direction : {Direction::forward, Direction::backward})
    for (auto format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
      for (Index channels : {1, 3, 16, 96})
        for (Index size : {1, 2, 3, 5, 8, 211})
          for (double value : {3e6, 1e19, infinity, -infinity, std::nan("")}) {
            LrnProblem p = lrn_problem(direction, DataType::f32, image_layout(format, 2, channels, 3, 5));
            p.size = size;
            p.beta = size == 3 ? 0.5 : size == 8 ? 0.6 : size == 2 ? 1 : 0.75;
            SCOPED_TRACE(to_string(p.x) + " size " + std::to_string(size) + " value " +
                         std::to_string(value));
            test::Trial trial(p, ++seed);
            trial.input("x").set(p.x.layout.size() / 2, value);
            expect_right(trial);
          }
}

// Squares that overflow float: x / sqrt(k + alpha / size * x^2) is still close to sqrt(size / alpha).
TEST(Lrn, SquaresBeyondFloat) {
  for (Direction direction : {Direction::forward, Direction::backward})
    for (double scale : {1e25, 1e-25}) {
      LrnProblem p = lrn_problem(direction, DataType::f32, row_major(Shape{2, 20, 3, 3}));
      p.beta = 0.5;
      p.k = 0;
      test::Trial trial(p, 1);
      for (Index i = 0; i < p.x.layout.size(); ++i) {
        trial.input("x").set(i, scale * static_cast<double>(1 + i % 7));
        if (direction == Direction::backward) trial.input("dy").set(i, scale > 1 ? 1 : 1e-20);
      }
      expect_right(trial);
    }
}

}  // namespace
}  // namespace cosmati
