// Gathered rows, and optimizer scalars in memory, in the emulator, compared with the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cosmati/ops/gather.h"
#include "cosmati/ops/optimizer.h"

namespace cosmati {
namespace {

using enum DataType;

TEST(EmulatedGather, TakesRowsInAnyOrder) {
  for (Index const features : {1, 5, 48})
    for (DataType const to : {f32, s32}) {
      GatherProblem problem;
      problem.x = describe(u8, Shape(9, features));
      problem.order = describe(s32, Shape(6));
      problem.order.alignment = 4;
      problem.y = describe(to, Shape(6, features));
      problem.scale = 0.5;
      problem.shift = to == f32 ? -3 : 1;
      Tensor x(problem.x), y[2] = {Tensor(problem.y), Tensor(problem.y)};
      for (Index i = 0; i < x.size(); ++i) x.set(i, static_cast<double>((i * 37 + 11) % 256 / 2 * 2));
      alignas(16) int const order[7] = {0, 8, 0, 3, 3, 7, 1};
      int of = 0;
      for (Backend const backend : {Backend::emulator, Backend::reference}) {
        auto const plan = make_plan(problem, this_device(backend, 1));
        prepare(plan).run({.x = x.data(), .order = order + 1, .y = y[of++].data()});
      }
      for (Index i = 0; i < y[0].size(); ++i)
        EXPECT_EQ(y[0].get(i), y[1].get(i)) << features << " features, element " << i;
    }
}

TEST(EmulatedGather, RefusesWhatHasNoRowsSideBySide) {
  GatherProblem problem;
  problem.x = describe(u8, column_major(Shape(9, 4)));
  problem.order = describe(s32, Shape(6));
  problem.y = describe(f32, Shape(6, 4));
  EXPECT_THROW(validate(problem), Error);
  problem.x = describe(u8, Shape(9, 5));
  EXPECT_THROW(validate(problem), Error);
  problem.x = describe(u8, Shape(0, 4));
  EXPECT_THROW(validate(problem), Error);
}

// The same step with scalars in memory and as arguments.
TEST(EmulatedOptimizer, NumbersMayLieInMemory) {
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam})
    for (Backend const backend : {Backend::emulator, Backend::cpu, Backend::reference}) {
      Device const device = this_device(backend, 1);
      OptimizerProblem problem;
      problem.kind = kind;
      problem.momentum = 0.5;
      problem.weight_decay = 0.125;
      problem.parameter = problem.gradient = problem.state = describe(f32, Shape(77));
      Tensor parameter[2], gradient(problem.gradient), velocity[2], second[2];
      for (int i = 0; i < 2; ++i) {
        for (Tensor* tensor : {&parameter[i], &velocity[i], &second[i]}) *tensor = Tensor(problem.state);
        for (Index e = 0; e < 77; ++e) {
          parameter[i].set(e, static_cast<double>(e) / 8);
          velocity[i].set(e, static_cast<double>(e % 5));
          second[i].set(e, 1);
          gradient.set(e, static_cast<double>(e % 7) - 3);
        }
      }
      prepare(make_plan(problem, device))
          .run({.parameter = parameter[0].data(),
                .gradient = gradient.data(),
                .velocity = velocity[0].data(),
                .second = second[0].data(),
                .rate = 0.25,
                .step = 3});
      StepNumbers const now = step_numbers(problem, 0.25, 3);
      float const numbers[] = {static_cast<float>(now.rate), static_cast<float>(now.correction1),
                               static_cast<float>(now.correction2)};
      problem.numbers = describe(f32, Shape(3));
      problem.numbers.alignment = 4;
      prepare(make_plan(problem, device))
          .run({.parameter = parameter[1].data(),
                .gradient = gradient.data(),
                .velocity = velocity[1].data(),
                .second = second[1].data(),
                .numbers = numbers});
      for (Index e = 0; e < 77; ++e) {
        EXPECT_NEAR(parameter[0].get(e), parameter[1].get(e), 1e-5) << name_of(backend);
      }
    }
}

// Scaled gradients give the same step; non-finite sums give none.
TEST(EmulatedOptimizer, GradientsMayBeScaled) {
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam})
    for (Backend const backend : {Backend::emulator, Backend::cpu, Backend::reference}) {
      Device const device = this_device(backend, 1);
      OptimizerProblem problem;
      problem.kind = kind;
      problem.momentum = 0.5;
      problem.weight_decay = 0.125;
      problem.parameter = problem.gradient = problem.state = describe(f32, Shape(70));
      auto const after = [&](double factor, float sum) {
        Tensor parameter(problem.state), gradient(problem.state), velocity(problem.state),
            second(problem.state);
        for (Index e = 0; e < 70; ++e) {
          parameter.set(e, static_cast<double>(e) / 8);
          velocity.set(e, static_cast<double>(e % 5));
          second.set(e, 1);
          gradient.set(e, factor * (static_cast<double>(e % 7) - 3));
        }
        float const scaling[] = {static_cast<float>(factor), sum};
        problem.scaling = factor == 1 ? TensorDescription() : describe(f32, Shape(2));
        problem.scaling.alignment = 4;
        prepare(make_plan(problem, device))
            .run({.parameter = parameter.data(),
                  .gradient = gradient.data(),
                  .velocity = velocity.data(),
                  .second = second.data(),
                  .rate = 0.25,
                  .step = 3,
                  .scaling = scaling});
        std::vector<double> all;
        for (Tensor const* tensor : {&parameter, &velocity, &second})
          for (Index e = 0; e < 70; ++e) all.push_back(tensor->get(e));
        return all;
      };
      auto const plain = after(1, 0), scaled = after(1024, -7);
      for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_NEAR(plain[i], scaled[i], 1e-5) << name_of(backend) << " " << i;
      float const infinity = HUGE_VALF;
      for (float const sum : {infinity, -infinity, std::nanf("")}) {
        auto const kept = after(1024, sum);
        for (std::size_t e = 0; e < 70; ++e) {
          EXPECT_EQ(kept[e], static_cast<double>(e) / 8) << name_of(backend) << " " << sum;
          EXPECT_EQ(kept[70 + e], static_cast<double>(e % 5)) << name_of(backend) << " " << sum;
          EXPECT_EQ(kept[140 + e], 1) << name_of(backend) << " " << sum;
        }
      }
    }
}

}  // namespace
}  // namespace cosmati
