// The alignment that a problem promises for its pointers, and how run() checks it.
#include <gtest/gtest.h>

#include <array>

#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/operation.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;

alignas(64) std::array<std::byte, 256> memory;

TEST(Alignment, IsNoPartOfWhatATensorIs) {
  TensorDescription const usual = describe(DataType::f32, {3});
  TensorDescription promised_less = usual;
  promised_less.alignment = 4;
  EXPECT_EQ(usual, promised_less);
  EXPECT_EQ(to_string(usual), "f32 (3)");
  EXPECT_EQ(to_string(promised_less), "f32 (3) aligned to 4");
}

TEST(Alignment, IsAPowerOfTwo) {
  AddProblem problem;
  problem.a = problem.y = describe(DataType::f32, {3});
  for (int const alignment : {0, -16, 12}) {
    problem.a.alignment = alignment;
    EXPECT_NE(complaint_of([&] { validate(problem); })
                  .find("a declares an alignment of " + std::to_string(alignment) +
                        " bytes; expected a power of two"),
              std::string::npos);
  }
}

TEST(Alignment, IsWhatTheProblemPromises) {
  TensorDescription tensor = describe(DataType::f32, {3});
  EXPECT_EQ(
      complaint_of([&] { check_argument("a", tensor, &memory[4]); }),
      "argument a is misaligned: 4 bytes past a multiple of 16, the alignment that the problem declares; its "
      "description may declare less");
  EXPECT_NO_THROW(check_argument("a", tensor, &memory[16]));
  tensor.alignment = 4;
  EXPECT_NO_THROW(check_argument("a", tensor, &memory[4]));
  tensor.alignment = 1;
  EXPECT_EQ(complaint_of([&] { check_argument("a", tensor, &memory[2]); }),
            "argument a is misaligned: 2 bytes past a multiple of 4, the size of its type f32");
}

TEST(Alignment, OfTheWorkspace) {
  EXPECT_NO_THROW(check_workspace(8, &memory[64], Backend::cpu));
  EXPECT_EQ(complaint_of([] { check_workspace(8, reinterpret_cast<void*>(64), Backend::cuda); }),
            "the workspace is not 256-byte aligned");
  EXPECT_EQ(complaint_of([] { check_workspace(8, nullptr, Backend::cuda); }),
            "this plan needs a workspace of 8 bytes, 256-byte aligned; none was given");
}

}  // namespace
}  // namespace cosmati
