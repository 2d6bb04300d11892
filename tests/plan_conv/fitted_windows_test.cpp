// Convolutions by windows with tiles whose columns fit the channels of the result.
#include <gtest/gtest.h>

#include <string>

#include "tests/plan/convolution_cases.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

Plan<ConvolutionProblem> plan_of(ConvolutionDirection direction, Index channels, Index filters,
                                 std::string const& policy = "") {
  Geometry g;
  g.n = 64, g.c = channels, g.k = filters, g.h = g.w = 32, g.r = g.s = 3;
  for (int i : {0, 1}) g.pad_begin[i] = g.pad_end[i] = 1;
  PlanOptions options;
  options.kernel = "warp_specialized";
  options.policy = policy;
  return make_plan(problem_of(direction, DataType::bf16, DataType::bf16, TensorFormat::nhwc, g),
                   described_h200(), options);
}
std::string name_of_tile(ConvolutionDirection direction, Index channels, Index filters) {
  return plan_of(direction, channels, filters).recipe.product.policy_name;
}

TEST(FittedWindows, ColumnsFitTheChannelsOfTheResult) {
  EXPECT_EQ(name_of_tile(ConvolutionDirection::forward, 288, 288), "256x144_1x2");  // shares windows
  EXPECT_EQ(name_of_tile(ConvolutionDirection::data, 400, 320), "256x144_2x1");
  EXPECT_EQ(name_of_tile(ConvolutionDirection::forward, 64, 64), "tower");  // 256x64, with more stages
  // Filter gradients take tiles by name only.
  std::string const filter = name_of_tile(ConvolutionDirection::filter, 144, 144);
  EXPECT_EQ(filter.find("144"), std::string::npos) << filter;
}

TEST(FittedWindows, AreNamedByTheirExtents) {
  GemmPolicy const tile = plan_of(ConvolutionDirection::data, 200, 64, "128x208_2x1").recipe.product.policy;
  EXPECT_EQ(tile.block_n, 208);
  EXPECT_EQ(tile.cluster_m, 2);
  EXPECT_EQ(plan_of(ConvolutionDirection::forward, 200, 128, "128x64_1x2").recipe.product.policy.cluster_n,
            2);
  std::string const no =
      testing::complaint_of([] { plan_of(ConvolutionDirection::filter, 64, 128, "128x64_2x1"); });
  EXPECT_NE(no.find("cluster_m = 2: blocks do not share the windows of a filter gradient"), std::string::npos)
      << no;
  // Windows of a filter gradient are loaded tap by tap.
  std::string const two_taps =
      testing::complaint_of([] { plan_of(ConvolutionDirection::filter, 64, 128, "128x80"); });
  EXPECT_NE(two_taps.find("block_n = 80; 64 columns of B are loaded at a time"), std::string::npos)
      << two_taps;
}

}  // namespace
}  // namespace cosmati
