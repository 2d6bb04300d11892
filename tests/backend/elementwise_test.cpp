// Operations that touch each element once, reductions and optimizer steps on the cpu backend against the
// reference.
#include "cosmati/ops/elementwise.h"

#include "cosmati/ops/activation.h"
#include "cosmati/ops/optimizer.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using enum DataType;
using test::Bound;
using test::Choice;
using test::Trial;
using test::Values;

constexpr DataType every_type[] = {f64, f32, tf32, f16, bf16, e4m3, e5m2, s8, u8, s32};

Device cpu(int threads = 2) { return this_device(Backend::cpu, threads); }

Shape random_shape(Choice& choice) {
  Shape shape;
  shape.rank = static_cast<int>(choice.between(1, 5));
  for (int d = 0; d < shape.rank; ++d)
    shape[d] = choice.of<Index>({1, 2, 3, 5, 7, 16, 33}) * (shape.rank <= 2 ? choice.of<Index>({1, 7}) : 1);
  return shape;
}

TEST(Transform, EveryTypeToEveryTypeInAnyLayout) {
  for (DataType from : every_type)
    for (DataType to : every_type)
      for (unsigned seed = 0; seed < 6; ++seed) {
        Choice choice(seed + 100 * static_cast<unsigned>(from));
        Shape const shape = random_shape(choice);
        TransformProblem problem{describe(from, choice.layout(shape)), describe(to, choice.layout(shape))};
        SCOPED_TRACE(to_string(problem.x) + " -> " + to_string(problem.y));
        Trial(problem, seed).expect_fast_and_close(cpu(), {.exact = true});
      }
}

TEST(Transform, EveryPatternOfTheShortTypes) {
  for (DataType from : {f16, bf16, e4m3, e5m2})
    for (DataType to : every_type) {
      Index const count = size_of(from) == 1 ? 256 : 65536;
      TransformProblem problem{describe(from, Shape{count}), describe(to, Shape{count})};
      Trial trial(problem, 0);
      for (Index i = 0; i < count; ++i) {
        if (count == 256)
          static_cast<unsigned char*>(trial.input("x").data())[i] = static_cast<unsigned char>(i);
        else
          static_cast<unsigned short*>(trial.input("x").data())[i] = static_cast<unsigned short>(i);
      }
      SCOPED_TRACE(std::string(name_of(from)) + " -> " + name_of(to));
      trial.expect_fast_and_close(cpu(), {.exact = true});
    }
}

TEST(Transform, FloatsNearEveryTieRoundAsTheReference) {
  for (DataType to : {tf32, f16, bf16, e4m3, e5m2, s8, u8, s32}) {
    constexpr Index count = 1 << 15;
    TransformProblem problem{describe(f32, Shape{count}), describe(to, Shape{count})};
    Trial trial(problem, 0);
    std::mt19937 random(1);
    auto* const x = static_cast<float*>(trial.input("x").data());
    for (Index i = 0; i < count; ++i) {
      unsigned bits = static_cast<unsigned>(random());
      if (i % 2 == 0) bits &= 0xfffff000u;  // ties for 16-bit types
      if (i % 4 == 0) bits &= 0xffff8000u;
      if (i % 8 == 0) bits &= 0xfff80000u;
      x[i] = __builtin_bit_cast(float, bits);
      if (i % 16 == 1) x[i] = static_cast<float>(static_cast<int>(bits % 1024) - 512) / 2;
    }
    SCOPED_TRACE(name_of(to));
    trial.expect_fast_and_close(cpu(), {.exact = true});
  }
}

TEST(Activation, EveryFunctionDirectionTypeAndLayout) {
  for (int f = 0; f < activation_function_count; ++f)
    for (DataType type : {f32, f64, f16, bf16})
      for (Direction direction : {Direction::forward, Direction::backward})
        for (unsigned seed = 0; seed < 6; ++seed) {
          Choice choice(seed);
          ActivationProblem p;
          p.function = static_cast<ActivationFunction>(f);
          p.direction = direction;
          p.alpha = default_alpha(p.function);
          p.beta = default_beta(p.function);
          Layout const layout = choice.layout(random_shape(choice));
          auto const other = [&] { return choice.heads() ? layout : choice.layout(layout.shape); };
          p.x = describe(type, layout);
          p.y = describe(type, other());
          if (direction == Direction::backward) p.dx = describe(type, other());
          SCOPED_TRACE(std::string(name_of(p.function)) + " " + name_of(type) + " direction " +
                       std::to_string(static_cast<int>(direction)) + " seed " + std::to_string(seed));
          Trial trial(p, seed);
          if (seed == 0) trial.input("x").set(0, std::nan(""));
          trial.expect_fast_and_close(cpu(), {.relative = type == f64 ? 1e-14 : 4e-6,
                                              .absolute = type == f64 ? 1e-14 : 4e-6,
                                              .uses_magnitude = false});
        }
}

TEST(Add, EveryTypeAndLayout) {
  for (DataType type : every_type)
    for (unsigned seed = 0; seed < 10; ++seed) {
      Choice choice(seed);
      Shape const shape = random_shape(choice);
      AddProblem p;
      p.a = describe(type, choice.layout(shape));
      if (choice.heads()) p.b = describe(choice.heads() ? type : f32, choice.layout(shape));
      p.y = describe(type, choice.layout(shape));
      p.alpha = choice.of({1.0, 0.25, 3.0});
      p.beta = choice.of({1.0, 0.5});
      SCOPED_TRACE(std::string(name_of(type)) + " seed " + std::to_string(seed));
      Trial(p, seed).expect_fast_and_close(cpu(), {.terms = 4});
    }
}

TEST(Dropout, TheSameMaskAsTheReferenceInAnyLayout) {
  for (DataType type : {f32, f64, bf16, s32})
    for (unsigned seed = 0; seed < 20; ++seed) {
      Choice choice(seed);
      Shape const shape = random_shape(choice);
      DropoutProblem p{describe(type, choice.layout(shape)), describe(type, choice.layout(shape)),
                       choice.of({0.0, 0.1, 0.5, 0.9}), 1234567890123ull * seed};
      Trial trial(p, seed);
      trial.settings().step = seed * 77;
      trial.expect_fast_and_close(cpu(choice.heads() ? 1 : 2), {.terms = 2});
    }
}

TEST(Reduce, EveryOperationAxesTypeAndLayout) {
  for (ReduceOperation operation : {ReduceOperation::sum, ReduceOperation::mean, ReduceOperation::max,
                                    ReduceOperation::min, ReduceOperation::sum_of_squares})
    for (DataType type : {f32, f64, f16, s32, u8})
      for (unsigned seed = 0; seed < 20; ++seed) {
        Choice choice(seed);
        ReduceProblem p{operation, {}, {}};
        Shape shape = random_shape(choice);
        p.x = describe(type, choice.layout(shape));
        for (int d = 0; d < shape.rank; ++d)
          if (choice.heads()) shape[d] = 1;
        p.y = describe(is_integer(type) ? s32 : type, choice.layout(shape));
        SCOPED_TRACE(std::string(name_of(operation)) + " " + name_of(type) + " seed " + std::to_string(seed));
        Trial trial(p, seed);
        if (seed == 0 && !is_integer(type)) trial.input("x").set(0, std::nan(""));
        double const terms = static_cast<double>(p.x.layout.size() / p.y.layout.size());
        trial.expect_fast_and_close(cpu(), {.terms = 4 * (std::sqrt(terms) + 4)});
      }
}

TEST(Reduce, LargeTensorsAreSharedByThreads) {
  for (Shape result : {Shape{1, 1, 1, 1}, Shape{1, 6, 1, 1}, Shape{64, 1, 1, 1}, Shape{64, 6, 28, 1}})
    for (auto format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn}) {
      ReduceProblem p{ReduceOperation::sum, describe(f32, image_layout(format, 64, 6, 28, 28)),
                      describe(f32, result)};
      Trial(p, 1).expect_fast_and_close(cpu(3), {.terms = 4});
    }
}

TEST(Optimizer, StepsOfAdamAreCountedFromOne) {
  OptimizerProblem problem;
  problem.kind = OptimizerKind::adam;
  problem.parameter = problem.gradient = problem.state = describe(DataType::f32, Shape(3));
  alignas(16) float parameter[4] = {1, 2, 3}, gradient[4] = {}, first[4] = {}, second[4] = {};
  for (Backend const backend : {Backend::reference, Backend::cpu, Backend::emulator}) {
    auto const adam = prepare(make_plan(problem, this_device(backend)));
    auto const run = [&](long long step) {
      adam.run({.parameter = parameter,
                .gradient = gradient,
                .velocity = first,
                .second = second,
                .rate = 0.1,
                .step = step},
               nullptr);
    };
    EXPECT_THROW(run(0), Error);
    EXPECT_THROW(run(-1), Error);
    EXPECT_NO_THROW(run(1));
    EXPECT_EQ(parameter[2], 3);
  }
}

TEST(Optimizer, EveryKindTypeAndLayout) {
  for (DataType type : {f32, f64, bf16})
    for (OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam})
      for (unsigned seed = 0; seed < 20; ++seed) {
        Choice choice(seed);
        Shape const shape = choice.heads() ? random_shape(choice) : Shape{choice.of<Index>({1, 1000, 20011})};
        OptimizerProblem p;
        p.kind = kind;
        p.parameter = describe(type, choice.layout(shape));
        p.gradient = describe(type, choice.layout(shape));
        p.momentum = choice.of({0.0, 0.9});
        p.nesterov = kind == OptimizerKind::sgd && p.momentum != 0 && choice.heads();
        p.weight_decay = choice.of({0.0, 1e-2});
        if (kind == OptimizerKind::adam || p.momentum != 0) p.state = describe(type, choice.layout(shape));
        SCOPED_TRACE(std::string(name_of(type)) + " kind " + std::to_string(static_cast<int>(kind)) +
                     " seed " + std::to_string(seed));
        Trial trial(p, seed);
        if (kind == OptimizerKind::adam)
          for (Index i = 0; i < shape.size(); ++i)
            trial.input("second").set(i, 0.1 + std::abs(trial.input("second").get(i)));
        trial.settings().rate = 0.05;
        trial.settings().step = choice.of<long long>({1, 2, 1000});
        trial.expect_fast_and_close(
            cpu(), {.relative = type == f64 ? 1e-12 : 1e-5, .absolute = type == f64 ? 1e-14 : 1e-5});
      }
}

}  // namespace
}  // namespace cosmati
