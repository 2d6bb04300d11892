// The Gaussian output layer and its loss, against hand-computed values and central differences.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/reference.h"
#include "tests/support/gradient_check.h"
#include "tests/support/random.h"
#include "tests/support/tensors.h"

namespace cosmati {
namespace {

using testing::poisoned;
using testing::Random;
using testing::tensor;
using testing::Values;
using testing::values_of;

TEST(ReferenceRbf, ByHand) {
  Tensor const x = tensor({2, 2}, {0, 0, 1, 1}), centres = tensor({3, 2}, {0, 0, 1, 0, 1, 2});
  Tensor const labels = tensor({2}, {1, 2}, DataType::s32);
  Tensor distances = poisoned({2, 3}), loss = poisoned({1});
  RbfProblem problem;
  problem.x = x.description();
  problem.centres = centres.description();
  problem.labels = labels.description();
  problem.distances = distances.description();
  problem.loss = loss.description();
  RbfProblem::Arguments const arguments{.x = x.data(),
                                        .centres = centres.data(),
                                        .labels = labels.data(),
                                        .distances = distances.data(),
                                        .loss = loss.data()};
  validate(problem);
  reference::run(problem, arguments);
  EXPECT_EQ(values_of(distances), (Values{0, 1, 5, 2, 1, 1}));
  double const e0 = std::exp(-0.0) + std::exp(-1.0) + std::exp(-5.0);
  double const e1 = std::exp(-2.0) + 2 * std::exp(-1.0);
  EXPECT_DOUBLE_EQ(loss.get(0), (1 + std::log(e0) + 1 + std::log(e1)) / 2);

  problem.rubbish = 0.5;
  reference::run(problem, arguments);
  EXPECT_DOUBLE_EQ(loss.get(0), (1 + std::log(e0 + std::exp(-0.5)) + 1 + std::log(e1 + std::exp(-0.5))) / 2);
}

TEST(ReferenceRbf, FarCentresDoNotUnderflow) {
  Tensor const x = tensor({1, 1}, {100}), centres = tensor({2, 1}, {0, 0});
  Tensor const labels = tensor({1}, {0}, DataType::s32);
  Tensor loss = poisoned({1});
  RbfProblem problem;
  problem.x = x.description();
  problem.centres = centres.description();
  problem.labels = labels.description();
  problem.loss = loss.description();
  validate(problem);
  reference::run(problem,
                 {.x = x.data(), .centres = centres.data(), .labels = labels.data(), .loss = loss.data()});
  EXPECT_NEAR(loss.get(0), std::log(2.0), 1e-11);
}

struct RbfCase {
  Tensor x, centres, labels, distances, ddistances, loss, dx, dcentres;
  RbfProblem problem;

  RbfCase(unsigned seed, Index features, bool labeled, double rubbish) {
    Random random(seed);
    Index const n = random.between(1, 3), classes = random.between(1, 4);
    x = random.tensor({n, features});
    centres = random.tensor({classes, features});
    labels = Tensor(DataType::s32, {n});
    for (Index i = 0; i < n; ++i) labels.set(i, static_cast<double>(random.between(0, classes - 1)));
    distances = random.tensor({n, classes});
    ddistances = random.tensor({n, classes});
    loss = poisoned({1});
    dx = Tensor(x.description());
    dcentres = random.tensor(centres.shape());
    problem.x = x.description();
    problem.centres = centres.description();
    if (labeled) problem.labels = labels.description();
    problem.loss = loss.description();
    problem.rubbish = rubbish;
  }
  double value() {
    RbfProblem forward = problem;
    forward.distances = distances.description();
    validate(forward);
    reference::run(forward, {.x = x.data(),
                             .centres = centres.data(),
                             .labels = labels.data(),
                             .distances = distances.data(),
                             .loss = loss.data()});
    return problem.labels.present() ? loss.get(0) : testing::weighted_sum(ddistances, distances);
  }
  void backward() {
    RbfProblem backward = problem;
    backward.direction = Direction::backward;
    if (!problem.labels.present()) backward.distances = ddistances.description();
    backward.dcentres = dcentres.description();
    validate(backward);
    reference::run(backward, {.x = x.data(),
                              .centres = centres.data(),
                              .labels = labels.data(),
                              .ddistances = ddistances.data(),
                              .dx = dx.data(),
                              .dcentres = dcentres.data()});
  }
  void check() {
    backward();
    testing::expect_gradient("dx", x, dx, [&] { return value(); });
    testing::expect_gradient("dcentres", centres, dcentres, [&] { return value(); });
  }
};

TEST(ReferenceRbf, GradientsOfTheLoss) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    RbfCase(seed, 1 + seed, true, __builtin_huge_val()).check();
    RbfCase(seed, 1 + seed, true, 0.7).check();
  }
  RbfCase(9, 150, true, 3).check();
}

TEST(ReferenceRbf, GradientsOfTheDistances) {
  for (unsigned seed = 0; seed < 6; ++seed) RbfCase(seed, 1 + seed, false, 1).check();
  RbfCase(9, 150, false, 1).check();
}

}  // namespace
}  // namespace cosmati
