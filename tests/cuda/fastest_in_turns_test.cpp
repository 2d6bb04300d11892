// Which of several is the fastest, on a device that slows down while it is measured.
#include <gtest/gtest.h>

#include <cmath>

#include "cli/timing.h"

namespace cosmati::cli {
namespace {

TEST(FastestInTurns, IsNotTheOneThatIsMeasuredOnACoolDevice) {
  double const seconds[] = {1.05, 1.10, 1.00, 1.07};
  int measurements = 0;
  auto const slowing = [&](std::size_t i) {
    return seconds[i] * (1 + 0.2 * (1 - std::exp(-0.1 * measurements++)));
  };
  EXPECT_EQ(fastest_in_turns(4, 5, slowing), 2U);
  EXPECT_EQ(measurements, 20);
}

TEST(FastestInTurns, IsTheOnlyOne) {
  EXPECT_EQ(fastest_in_turns(1, 5, [](std::size_t) { return 1.0; }), 0U);
}

}  // namespace
}  // namespace cosmati::cli
