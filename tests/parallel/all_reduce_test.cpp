// Sums over devices in host memory, and threads that work together: all get the same bits, and no thread
// waits for one that has failed.
#include "src/parallel/all_reduce.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/parallel/crew.h"

namespace cosmati::parallel {
namespace {

TEST(AllReduce, SumsWeightedArraysAgainAndAgain) {
  constexpr int members = 3;
  auto const sums =
      make_all_reduce(std::vector<Device>(members, this_device(Backend::reference, 1)), nullptr);
  std::vector<float> data[members];
  Crew crew(members, {});
  for (int turn = 0; turn < 100; ++turn)
    crew.run([&](int i) {
      auto const at = static_cast<std::size_t>(i);
      data[at] = {static_cast<float>(i), 0.1F, static_cast<float>(turn)};
      sums[at]->sum(data[at].data(), data[at].size(), i == 0 ? 0.5 : 0.25, nullptr);
    });
  EXPECT_EQ(data[0][0], 0.75F);
  EXPECT_NEAR(data[0][1], 0.1F, 1e-8F);
  EXPECT_EQ(data[0][2], 99);
  for (auto const& other : data) EXPECT_EQ(other, data[0]);
}

// The first failure is reported, not that others lost their peer.
TEST(Crew, RethrowsTheFirstFailureAndGoesOn) {
  auto const sums = make_all_reduce(std::vector<Device>(2, this_device(Backend::reference, 1)), nullptr);
  Crew crew(2, [&] {
    for (auto const& part : sums) part->abort();
  });
  float data[2] = {};
  auto const work = [&](int i) {
    if (i == 1) throw std::runtime_error("out of order");
    sums[0]->sum(&data[0], 1, 1, nullptr);
  };
  try {
    crew.run(work);
    FAIL() << "nothing was thrown";
  } catch (std::exception const& error) {
    EXPECT_STREQ(error.what(), "out of order");
  }
  std::atomic<int> ran{0};
  crew.run([&](int) { ++ran; });
  EXPECT_EQ(ran, 2);
  EXPECT_THROW(sums[1]->sum(&data[1], 1, 1, nullptr), Error);
}

// Devices that call different operations get an error.
TEST(AllReduce, RefusesArraysOfDifferentLengths) {
  auto const sums = make_all_reduce(std::vector<Device>(2, this_device(Backend::reference, 1)), nullptr);
  Crew crew(2, {});
  float data[2][2] = {};
  std::string said;
  try {
    crew.run([&](int i) { sums[static_cast<std::size_t>(i)]->sum(data[i], i == 0 ? 1 : 2, 1, nullptr); });
  } catch (Error const& error) {
    said = error.what();
  }
  EXPECT_EQ(said, "device 0 adds 1 numbers, device 1 adds 2");
}

}  // namespace
}  // namespace cosmati::parallel
