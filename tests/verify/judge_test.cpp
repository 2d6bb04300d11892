// The verdicts of verify: results with planted errors must be rejected, permitted ones accepted.
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <limits>

#include "cli/options/sizes.h"
#include "cli/verify/verification.h"

namespace cosmati::cli {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
double const nan = std::numeric_limits<double>::quiet_NaN();

// A problem with its own inputs, and the reference's result, which a test may change.
class Judged {
 public:
  Judged(std::unique_ptr<Subject> subject, std::vector<Index> const& size, std::string const& words = "",
         DataType type = DataType::f32, std::string const& accumulator = "", std::string const& result = "")
      : task_([&] {
          CLI::App app;
          Options options(app);
          subject->add_parameters(options);
          app.parse(words);
          Common common;
          common.types.all = cosmati::name_of(type);
          common.types.accumulator = accumulator;
          common.types.d = result;
          return std::move(made_job(*subject, size, common).task);
        }()) {
    for (Slot const& slot : task_->slots()) {
      inputs_.emplace_back(slot.role == Role::output ? describe(slot.description.type, Shape(0))
                                                     : slot.description);
      inputs_.back().fill(1);
    }
  }

  Tensor& input(std::size_t slot) { return inputs_[slot]; }
  std::size_t slot(std::string const& name) {
    auto const slots = task_->slots();
    std::size_t at = 0;
    while (slots.at(at).name != name) ++at;
    return at;
  }

  // The verdict on the reference's result with one element changed.
  bool accepts(HardData data, Index element, double value, std::size_t output = 0,
               Backend backend = Backend::cpu) {
    std::vector<std::vector<Tensor>> runs(1);
    std::vector<void*> pointers;
    std::vector<Tensor> outputs;
    auto const slots = task_->slots();
    for (Slot const& slot : slots) outputs.emplace_back(slot.description);
    for (std::size_t i = 0; i < slots.size(); ++i)
      pointers.push_back(slots[i].role == Role::output ? outputs[i].data() : inputs_[i].data());
    task_->prepare(this_device(Backend::reference), {})->run(pointers, nullptr);
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (slots[i].role == Role::output) runs[0].push_back(std::move(outputs[i]));
    if (element >= 0) runs[0][output].set(element, value);
    Verdict verdict;
    judge(*task_, backend, inputs_, runs, verdict, {}, data);
    return verdict.correct;
  }

 private:
  std::unique_ptr<Task> task_;
  std::vector<Tensor> inputs_;
};

TEST(Judge, BoundsEachResultOfAnLrnByItsOwnWindow) {
  Judged lrn(make_subject("lrn"), {1, 16, 1, 1});
  lrn.input(0).set(0, 1e7);
  EXPECT_TRUE(lrn.accepts(HardData::huge, -1, 0));
  EXPECT_FALSE(lrn.accepts(HardData::huge, 8, 0.2002));  // the error of a running sum over the channels
  EXPECT_FALSE(lrn.accepts(HardData::huge, 8, nan));
}

TEST(Judge, WantsEachRowOfASoftmaxThatHoldsNaNToBeNaN) {
  Judged softmax(make_subject("softmax"), {2, 3});
  softmax.input(0).set(1, nan);
  EXPECT_TRUE(softmax.accepts(HardData::nonfinite, -1, 0));
  EXPECT_FALSE(softmax.accepts(HardData::nonfinite, 0, 0));
  EXPECT_FALSE(softmax.accepts(HardData::nonfinite, 3, nan));  // the row without NaN
}

TEST(Judge, PermitsNaNWherePaddingMeetsWhatIsNotFinite) {
  Judged convolution(make_subject("conv"), {1, 1, 4, 4, 1, 3, 3}, "--pad 1,1,1,1");
  convolution.input(1).set(0, infinity);
  EXPECT_TRUE(convolution.accepts(HardData::nonfinite, -1, 0));
  EXPECT_TRUE(convolution.accepts(HardData::nonfinite, 0, nan));  // a corner: the tap lies in the padding
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 0, 5));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 5, nan));  // inside the image: infinity, not NaN
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 5, -infinity));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 5, 9));
}

TEST(Judge, WantsWhatIsNotFiniteToStayWithinItsWindows) {
  Judged convolution(make_subject("conv"), {1, 1, 6, 6, 1, 3, 3}, "--pad 1,1,1,1");
  convolution.input(0).set(0, nan);
  EXPECT_TRUE(convolution.accepts(HardData::nonfinite, -1, 0));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 0, 4));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 35, nan));
}

// Three sums, each rounded to a multiple of 2^-24, are off by up to half of that each.
TEST(Judge, KnowsHowCoarselySmallSumsInF16AreRounded) {
  for (auto const& [accumulator, accepted] : {std::pair("f16", true), std::pair("f32", false)}) {
    Judged product(make_subject("gemm"), {1, 1, 3, 1}, "", DataType::f16, accumulator);
    for (std::size_t const factor : {0u, 1u})
      for (Index i = 0; i < 3; ++i) product.input(factor).set(i, 0x1p-10);
    EXPECT_EQ(product.accepts(HardData::none, 0, 3 * 0x1p-20 + 3 * 0x1p-24), accepted) << accumulator;
    EXPECT_FALSE(product.accepts(HardData::none, 0, 3 * 0x1p-20 + 6 * 0x1p-24)) << accumulator;
  }
}

// A factor multiplies the absolute error of small sums.
TEST(Judge, KnowsWhatMultipliesSmallSumsInF16) {
  for (auto const& [accumulator, accepted] : {std::pair("f16", true), std::pair("f32", false)}) {
    Judged product(make_subject("gemm"), {1, 1, 3, 1}, "--epilogue acc*scale[m]", DataType::f16, accumulator);
    for (std::size_t const factor : {0u, 1u})
      for (Index i = 0; i < 3; ++i) product.input(factor).set(i, 0x1p-10);
    product.input(product.slot("operand scale")).fill(1024);
    EXPECT_EQ(product.accepts(HardData::magnitudes, 0, 3 * 0x1p-10 + 3 * 0x1p-14), accepted) << accumulator;
    EXPECT_FALSE(product.accepts(HardData::magnitudes, 0, 3 * 0x1p-10 + 6 * 0x1p-14)) << accumulator;
  }
}

// Squares of one size, added sequentially: every addition rounds in the same direction.
TEST(Judge, KnowsThatRoundingsOfAVarianceMayHaveOneSign) {
  constexpr Index count = 4096;
  Judged norm(make_subject("batchnorm"), {count, 1}, "--training");
  float const large = 31111.1f;
  float sum = 0;
  for (Index i = 0; i < count; ++i) {
    norm.input(0).set(i, i % 2 == 0 ? large : -large);
    sum += large * large;
  }
  double const truth = static_cast<double>(large) * large, in_order = static_cast<double>(sum / count);
  double const error = std::fabs(in_order - truth) / truth * 0x1p24;
  EXPECT_GT(error, 6 * std::sqrt(count) + 4);  // more than a random walk
  EXPECT_LT(error, count);
  EXPECT_TRUE(norm.accepts(HardData::cancellation, 0, in_order, 2));
  EXPECT_FALSE(norm.accepts(HardData::none, 0, in_order, 2));
  EXPECT_FALSE(norm.accepts(HardData::cancellation, 0, truth * (1 + 2 * count * 0x1p-24), 2));
}

// Squares of small integers take few different values.
TEST(Judge, KnowsThatSquaresOfSmallIntegersRoundAlike) {
  constexpr Index count = 7 * 585;
  Judged norm(make_subject("batchnorm"), {count, 1}, "--training");
  for (Index i = 0; i < count; ++i) norm.input(0).set(i, static_cast<double>(i % 7 - 3));
  double const half_worst = 4 * (1 - 0x1p-24 * count / 2);
  EXPECT_TRUE(norm.accepts(HardData::none, 0, half_worst, 2));
  norm.input(0).set(0, 0.5);
  EXPECT_FALSE(norm.accepts(HardData::none, 0, half_worst, 2));
}

// An infinite scale turns x - mean into an infinity of the same sign, or into NaN if the difference is 0. If
// x equals the mean except for rounding, the order of the sum decides which.
TEST(Judge, PermitsEachInfinityAndNaNWhereAnInfiniteScaleMeetsTheMean) {
  constexpr Index count = 9;
  Judged norm(make_subject("batchnorm"), {count, 1}, "--training");
  for (Index i = 0; i < count; ++i) norm.input(0).set(i, static_cast<double>(0.04f) * static_cast<double>(i));
  norm.input(0).set(4, static_cast<double>(std::nextafter(0.16f, 1.0f)));  // the mean is 0.16
  norm.input(norm.slot("scale")).fill(infinity);
  EXPECT_TRUE(norm.accepts(HardData::nonfinite, -1, 0));
  for (double const value : {nan, infinity, -infinity})
    EXPECT_TRUE(norm.accepts(HardData::nonfinite, 4, value)) << value;
  EXPECT_FALSE(norm.accepts(HardData::nonfinite, 4, 1));
  EXPECT_FALSE(norm.accepts(HardData::nonfinite, 5, nan));  // far above the mean
  EXPECT_FALSE(norm.accepts(HardData::nonfinite, 5, -infinity));
}

// tanh passes the error of a sum that cancels on to the following factor.
TEST(Judge, KnowsWhatMultipliesAFunctionThatLevelsOff) {
  Judged product(make_subject("gemm"), {1, 1, 2, 1}, "--epilogue tanh(acc)*scale[m]");
  product.input(0).set(0, 1e4);
  product.input(0).set(1, -1e4);
  product.input(product.slot("operand scale")).fill(100);
  double const off = 2e4 * 6 * 0x1p-24 * 100;  // absolute values that sum to 2e4, with an error of six units
  EXPECT_TRUE(product.accepts(HardData::magnitudes, 0, 0.9 * off));
  EXPECT_FALSE(product.accepts(HardData::magnitudes, 0, 100 * off));
}

// The sign of a sum that cancels depends on rounding, and decides the sign of its product with an infinity.
TEST(Judge, PermitsEitherInfinityWhereASumThatCancelsMeetsOne) {
  Judged product(make_subject("gemm"), {2, 1, 3, 1}, "--epilogue tanh(acc)*scale[m]");
  product.input(0).set(0, 1000);
  product.input(0).set(1, -999.9999);  // row 0 sums to about 1e-4 - 1e-4
  product.input(0).set(2, -1e-4);
  product.input(product.slot("operand scale")).fill(infinity);
  for (double const value : {infinity, -infinity})
    EXPECT_TRUE(product.accepts(HardData::nonfinite, 0, value)) << value;
  EXPECT_FALSE(product.accepts(HardData::nonfinite, 0, 1));
  EXPECT_FALSE(product.accepts(HardData::nonfinite, 1, -infinity));  // row 1 sums to 3
}

// Tensor cores cut products of 8-bit floats at 2^-13 of the largest, which for hard data may be nearly the
// whole sum.
TEST(Judge, KnowsHowTensorCoresSumEightBitFloats) {
  Judged product(make_subject("gemm"), {1, 1, 33, 1}, "", DataType::e4m3, "", "f32");
  product.input(0).set(0, 256);
  double const truth = 256 + 32, off = 0x1p-10 * truth;
  EXPECT_TRUE(product.accepts(HardData::magnitudes, 0, truth - off, 0, Backend::cuda));
  EXPECT_FALSE(product.accepts(HardData::magnitudes, 0, truth - 3 * off, 0, Backend::cuda));
  EXPECT_FALSE(product.accepts(HardData::none, 0, truth - off, 0, Backend::cuda));
  EXPECT_FALSE(product.accepts(HardData::magnitudes, 0, truth - off));
}

// The gradient of a loss with a single, certain class is 0; the reference computes exactly that, however far
// away the centers are.
TEST(Judge, HasTheGradientOfALossOfFarCentersExactly) {
  Judged rbf(make_subject("rbf"), {1, 26, 2}, "--direction backward", DataType::f64);
  for (Index i = 0; i < 26; ++i) {
    rbf.input(rbf.slot("x")).set(i, 11.3);
    rbf.input(rbf.slot("centres")).set(i, -4.7);
    rbf.input(rbf.slot("centres")).set(26 + i, -14.1);
  }
  rbf.input(rbf.slot("labels")).fill(0);
  EXPECT_TRUE(rbf.accepts(HardData::constant, 0, 0));
  EXPECT_FALSE(rbf.accepts(HardData::constant, 0, 1e-10));
}

TEST(Judge, TakesTheLargestNumberForInfinityOnlyWithinTheBound) {
  Judged product(make_subject("gemm"), {1, 1, 4, 1});
  product.input(0).fill(1e38);
  EXPECT_TRUE(product.accepts(HardData::huge, 0, infinity));  // the sums overflow
  product.input(0).fill(1e30);
  EXPECT_FALSE(product.accepts(HardData::huge, 0, infinity));
}

}  // namespace
}  // namespace cosmati::cli
