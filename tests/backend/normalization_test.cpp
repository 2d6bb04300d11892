// Batch normalization, LRN, softmax and the losses on the cpu backend against the reference.
#include "cosmati/ops/normalization.h"

#include "cosmati/ops/softmax.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using enum DataType;
using test::Bound;
using test::Choice;
using test::Trial;
using test::Values;

Device cpu(int threads = 2) { return this_device(Backend::cpu, threads); }

Layout random_images(Choice& choice, Index n, Index c, Index h, Index w) {
  if (choice.between(0, 4) == 0) return choice.layout({n, c, h, w});
  return image_layout(choice.of({TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn}), n, c, h, w);
}

Bound functions(DataType type, double scale = 1) {
  double const tolerance = scale * (type == f64 ? 1e-12 : 1e-5);
  return {.relative = tolerance, .absolute = tolerance, .uses_magnitude = false};
}

TEST(BatchNorm, EveryModeTypeAndLayout) {
  for (BatchNormMode mode : {BatchNormMode::inference, BatchNormMode::training, BatchNormMode::backward})
    for (DataType type : {f32, f64, bf16, f16})
      for (unsigned seed = 0; seed < 12; ++seed) {
        Choice choice(seed);
        Index const c = choice.of<Index>({1, 2, 3, 6, 16, 17});
        BatchNormProblem p;
        p.mode = mode;
        p.x = describe(type, random_images(choice, choice.of<Index>({2, 3, 8}), c, choice.between(2, 9),
                                           choice.between(2, 9)));
        if (choice.between(0, 4) == 0) p.x = describe(type, Shape{37, c});
        p.y = p.x;
        if (mode == BatchNormMode::backward) p.dx = p.x;
        if (seed % 4 == 3) p.slope = seed % 8 == 3 ? 0 : 0.2;
        p.statistics = describe(type == f64 ? f64 : f32, Shape{c});
        SCOPED_TRACE(std::string(name_of(type)) + " mode " + std::to_string(static_cast<int>(mode)) +
                     " seed " + std::to_string(seed) + " " + to_string(p.x));
        Trial trial(p, seed);
        if (mode != BatchNormMode::training)
          for (Index i = 0; i < c; ++i)
            trial.input("variance").set(i, 0.5 + std::abs(trial.input("variance").get(i)));
        trial.expect_close(cpu(), functions(type, mode == BatchNormMode::backward ? 20 : 4));
      }
}

TEST(Lrn, EveryDirectionTypeAndLayout) {
  for (Direction direction : {Direction::forward, Direction::backward})
    for (DataType type : {f32, f64, bf16})
      for (unsigned seed = 0; seed < 12; ++seed) {
        Choice choice(seed);
        LrnProblem p;
        p.direction = direction;
        p.x = describe(type, random_images(choice, 2, choice.of<Index>({1, 3, 16, 17}), choice.between(1, 7),
                                           choice.between(1, 7)));
        p.y = p.x;
        if (direction == Direction::backward) p.dx = p.x;
        p.size = choice.of<Index>({1, 3, 4, 5});
        p.alpha = 0.1;
        p.k = choice.of({1.0, 2.0});
        SCOPED_TRACE(std::string(name_of(type)) + " seed " + std::to_string(seed));
        Trial(p, seed).expect_close(cpu(), functions(type));
      }
}

TEST(Softmax, EveryAxisDirectionTypeAndLayout) {
  for (Direction direction : {Direction::forward, Direction::backward})
    for (bool logarithm : {false, true})
      for (DataType type : {f32, f64, f16})
        for (unsigned seed = 0; seed < 16; ++seed) {
          Choice choice(seed);
          SoftmaxProblem p;
          p.direction = direction;
          p.logarithm = logarithm;
          Layout const layout = choice.heads()
                                    ? choice.layout({choice.between(1, 40), choice.between(1, 40)})
                                    : choice.layout({3, choice.between(1, 40), choice.between(1, 10)});
          p.axis = static_cast<int>(choice.between(0, layout.rank() - 1));
          p.x = p.y = describe(type, layout);
          if (direction == Direction::backward) p.dy = p.y;
          SCOPED_TRACE(std::string(name_of(type)) + " seed " + std::to_string(seed));
          Trial(p, seed).expect_close(cpu(), functions(type, 20));
        }
}

TEST(CrossEntropy, LossAndGradient) {
  for (Direction direction : {Direction::forward, Direction::backward})
    for (DataType type : {f32, f64, bf16})
      for (unsigned seed = 0; seed < 12; ++seed) {
        Choice choice(seed);
        Index const n = choice.of<Index>({1, 3, 256}), classes = choice.of<Index>({1, 2, 10, 1000});
        CrossEntropyProblem p;
        p.direction = direction;
        p.x = describe(type, choice.layout({n, classes}));
        p.labels = describe(s32, choice.layout({n}));
        if (direction == Direction::forward) p.loss = describe(type == f64 ? f64 : f32, Shape{1});
        if (direction == Direction::backward || choice.heads())
          p.dx = describe(type, choice.layout({n, classes}));
        Trial trial(p, seed);
        for (Index i = 0; i < n; ++i)
          trial.input("labels").set(i, static_cast<double>(choice.between(0, classes - 1)));
        trial.expect_fast_and_close(cpu(), functions(type, 0.1));
      }
}

TEST(CrossEntropy, ALabelThatIsNoClassIsRefused) {
  CrossEntropyProblem p;
  p.x = describe(f32, Shape{4, 10});
  p.labels = describe(s32, Shape{4});
  p.loss = describe(f32, Shape{1});
  Trial trial(p, 1);
  for (Index i = 0; i < 4; ++i) trial.input("labels").set(i, i == 2 ? 10 : 1);
  auto const prepared = prepare(make_plan(p, cpu()));
  try {
    trial.run(prepared);
    FAIL() << "label 10 of 10 classes was taken";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("10"), std::string::npos) << error.what();
  }
}

TEST(Rbf, DistancesLossAndGradients) {
  for (Direction direction : {Direction::forward, Direction::backward})
    for (DataType type : {f32, f64})
      for (unsigned seed = 0; seed < 16; ++seed) {
        Choice choice(seed);
        Index const n = choice.of<Index>({1, 3, 70}), classes = choice.of<Index>({1, 10}),
                    f = choice.of<Index>({1, 9, 84});
        RbfProblem p;
        p.direction = direction;
        p.x = describe(type, choice.layout({n, f}));
        p.centres = describe(type, choice.layout({classes, f}));
        bool const labeled = choice.heads();
        if (labeled) {
          p.labels = describe(s32, Shape{n});
          if (direction == Direction::forward) p.loss = describe(type, Shape{1});
          if (choice.heads()) p.rubbish = 1.0;
        }
        if (!labeled || (direction == Direction::forward && choice.heads()))
          p.distances = describe(type, choice.layout({n, classes}));
        if (direction == Direction::backward && choice.heads())
          p.dcentres = describe(type, choice.layout({classes, f}));
        Trial trial(p, seed);
        if (labeled)
          for (Index i = 0; i < n; ++i)
            trial.input("labels").set(i, static_cast<double>(choice.between(0, classes - 1)));
        SCOPED_TRACE("seed " + std::to_string(seed));
        trial.expect_fast_and_close(cpu(), functions(type));
      }
}

}  // namespace
}  // namespace cosmati
