// Philox4x32-10 against the known answers of its authors' library (Random123, kat_vectors), and the functions
// built on it.
#include "cosmati/core/philox.h"

#include <gtest/gtest.h>

namespace cosmati {
namespace {

constexpr bool equal(PhiloxBlock const& block, unsigned a, unsigned b, unsigned c, unsigned d) {
  return block.word[0] == a && block.word[1] == b && block.word[2] == c && block.word[3] == d;
}

TEST(Philox, KnownAnswers) {
  static_assert(equal(philox({{0, 0, 0, 0}}, PhiloxKeys(0)), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr unsigned ones = 0xffffffff;
  static_assert(equal(philox({{ones, ones, ones, ones}}, PhiloxKeys(~0ULL)), 0x408f276d, 0x41c83b0e,
                      0xa20bc7c6, 0x6d5451fd));
  static_assert(
      equal(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, PhiloxKeys(0x299f31d0a4093822)),
            0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
  EXPECT_EQ(philox({{0, 0, 0, 0}}, PhiloxKeys(0)).word[0], 0x6627e8d5u);
}

TEST(Philox, BlocksAreNamedBySeedStepAndNumber) {
  PhiloxBlock const block =
      philox_block(PhiloxKeys(0x299f31d0a4093822), 0x0370734413198a2e, 0x85a308d3243f6a88);
  EXPECT_TRUE(equal(block, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, DropoutMaskComparesWordWithProbability) {
  DropoutMask const mask(0.5, 7, 9);
  EXPECT_TRUE(mask.keeps_word(0x80000000u));
  EXPECT_FALSE(mask.keeps_word(0x7fffffffu));
  for (unsigned long long i = 0; i < 100; ++i)
    EXPECT_EQ(mask.keeps(i), philox_block(PhiloxKeys(7), 9, i / 4).word[i % 4] >= 0x80000000u) << i;
  DropoutMask const none(1, 7, 9), all(0, 7, 9);
  EXPECT_FALSE(none.keeps_word(0xffffffffu));
  EXPECT_TRUE(all.keeps_word(0));
}

}  // namespace
}  // namespace cosmati
