// Interleaved medians on a device that slows down during the measurement.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/timing.h"

namespace cosmati::cli {
namespace {

TEST(MediansInTurns, DoNotFavorWhatIsMeasuredOnACoolDevice) {
  double const seconds[] = {1.05, 1.10, 1.00, 1.07};
  int measurements = 0;
  auto const medians = medians_in_turns(
      4, 5, [&](std::size_t i) { return seconds[i] * (1 + 0.2 * (1 - std::exp(-0.1 * measurements++))); });
  ASSERT_EQ(medians.size(), 4U);
  EXPECT_EQ(std::min_element(medians.begin(), medians.end()) - medians.begin(), 2);
  EXPECT_EQ(measurements, 20);
}

TEST(MediansInTurns, LeaveOutliersOut) {
  int measurements = 0;
  auto const medians =
      medians_in_turns(1, 5, [&](std::size_t) { return measurements++ == 2 ? 1000.0 : measurements * 1.0; });
  EXPECT_EQ(medians, std::vector<double>{4});
}

}  // namespace
}  // namespace cosmati::cli
