// Which strides map two elements to the same address, checked against all offsets.
#include "src/ops/check.h"

#include <gtest/gtest.h>

#include <set>

namespace cosmati {
namespace {

TEST(SharedPlace, AgainstEveryOffset) {
  int interleaved = 0;
  for (Index s0 = 0; s0 <= 9; ++s0)
    for (Index s1 = 0; s1 <= 9; ++s1)
      for (Index s2 = 0; s2 <= 9; ++s2) {
        Layout const layout{{2, 3, 3}, {s0, s1, s2}};
        std::set<Index> offsets;
        for (Index i = 0; i < layout.size(); ++i) offsets.insert(layout.offset_of_linear(i));
        bool const distinct = static_cast<Index>(offsets.size()) == layout.size();
        auto const shared = shared_place(layout);
        ASSERT_EQ(shared.has_value(), !distinct) << s0 << " " << s1 << " " << s2;
        if (distinct && layout.overlaps()) ++interleaved;
        if (!shared) continue;
        EXPECT_FALSE(shared->first == shared->second);
        EXPECT_EQ(layout.offset_of(shared->first.extent), layout.offset_of(shared->second.extent));
        for (int d = 0; d < 3; ++d)
          EXPECT_LT(std::max(shared->first[d], shared->second[d]), layout.extent(d));
      }
  EXPECT_GT(interleaved, 0);  // some cases are not decided by sorting the strides
}

TEST(SharedPlace, AtTheEdges) {
  EXPECT_FALSE(shared_place(Layout()));
  EXPECT_FALSE(shared_place({{4, 0}, {0, 1}}));
  EXPECT_FALSE(shared_place({{1, 1, 5}, {0, 0, 1}}));
  EXPECT_TRUE(shared_place({{4}, {0}}));
  // The smallest common multiple of the strides is larger.
  EXPECT_FALSE(shared_place({{1 << 18, 1 << 18}, {(1 << 18) + 1, 1 << 18}}));
  // The search ends without a decision, and the strides alone would allow a shared address: rank 0.
  auto const undecided = shared_place({{1 << 21, 1 << 21}, {(1 << 21) + 1, 1 << 21}});
  ASSERT_TRUE(undecided);
  EXPECT_EQ(undecided->first.rank, 0);
}

}  // namespace
}  // namespace cosmati
