// What verify takes for right: results that were spoiled by hand must be found, permitted ones must not.
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>
#include <limits>

#include "cli/sizes.h"
#include "cli/verification.h"

namespace cosmati::cli {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
double const nan = std::numeric_limits<double>::quiet_NaN();

// A problem with inputs of its own, and the reference's result, which a test may change.
class Judged {
 public:
  Judged(std::unique_ptr<Subject> subject, std::vector<Index> const& size, std::string const& words = "")
      : task_([&] {
          CLI::App app;
          Options options(app);
          subject->add_parameters(options);
          app.parse(words);
          return std::move(made_job(*subject, size, {}).task);
        }()) {
    for (Slot const& slot : task_->slots()) {
      inputs_.emplace_back(slot.role == Role::output ? describe(slot.description.type, Shape(0))
                                                     : slot.description);
      inputs_.back().fill(1);
    }
  }

  Tensor& input(std::size_t slot) { return inputs_[slot]; }

  // The verdict on the reference's own result with one element changed.
  bool accepts(HardData data, Index element, double value) {
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
    if (element >= 0) runs[0][0].set(element, value);
    Verdict verdict;
    judge(*task_, Backend::cpu, inputs_, runs, verdict, {}, data);
    return verdict.correct;
  }

 private:
  std::unique_ptr<Task> task_;
  std::vector<Tensor> inputs_;
};

TEST(Judge, BoundsEachResultOfAnLrnByItsOwnWindow) {
  Judged lrn(make_lrn(), {1, 16, 1, 1});
  lrn.input(0).set(0, 1e7);
  EXPECT_TRUE(lrn.accepts(HardData::huge, -1, 0));
  EXPECT_FALSE(lrn.accepts(HardData::huge, 8, 0.2002));  // what a running sum over the channels leaves
  EXPECT_FALSE(lrn.accepts(HardData::huge, 8, nan));
}

TEST(Judge, WantsEachRowOfASoftmaxThatHoldsNaNToBeNaN) {
  Judged softmax(make_softmax(), {2, 3});
  softmax.input(0).set(1, nan);
  EXPECT_TRUE(softmax.accepts(HardData::nonfinite, -1, 0));
  EXPECT_FALSE(softmax.accepts(HardData::nonfinite, 0, 0));
  EXPECT_FALSE(softmax.accepts(HardData::nonfinite, 3, nan));  // the row without
}

TEST(Judge, PermitsNaNWherePaddingMeetsWhatIsNotFinite) {
  Judged convolution(make_convolution(), {1, 1, 4, 4, 1, 3, 3}, "--pad 1,1,1,1");
  convolution.input(1).set(0, infinity);
  EXPECT_TRUE(convolution.accepts(HardData::nonfinite, -1, 0));
  EXPECT_TRUE(convolution.accepts(HardData::nonfinite, 0, nan));  // a corner: the tap lies in the padding
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 0, 5));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 5, nan));  // within: infinity, and so
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 5, -infinity));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 5, 9));
}

TEST(Judge, WantsWhatIsNotFiniteToStayWithinItsWindows) {
  Judged convolution(make_convolution(), {1, 1, 6, 6, 1, 3, 3}, "--pad 1,1,1,1");
  convolution.input(0).set(0, nan);
  EXPECT_TRUE(convolution.accepts(HardData::nonfinite, -1, 0));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 0, 4));
  EXPECT_FALSE(convolution.accepts(HardData::nonfinite, 35, nan));
}

TEST(Judge, TakesTheLargestNumberForInfinityOnlyWithinTheBound) {
  Judged product(make_gemm(), {1, 1, 4, 1});
  product.input(0).fill(1e38);
  EXPECT_TRUE(product.accepts(HardData::huge, 0, infinity));  // sums pass the largest number
  product.input(0).fill(1e30);
  EXPECT_FALSE(product.accepts(HardData::huge, 0, infinity));
}

}  // namespace
}  // namespace cosmati::cli
