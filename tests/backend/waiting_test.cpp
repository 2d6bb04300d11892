// Threads wait passively if other processes use the processors.
#include "src/backend/cpu/runtime/waiting.h"

#include <gtest/gtest.h>

namespace cosmati::cpu {
namespace {

constexpr char idle[] = "cpu  1 2 3\nctxt 5\nprocesses 7\nprocs_running 1\nprocs_blocked 0\n";
constexpr char one_more[] = "cpu  1 2 3\nctxt 5\nprocesses 7\nprocs_running 2\nprocs_blocked 0\n";
constexpr char eight_more[] = "cpu  1 2 3\nctxt 5\nprocesses 7\nprocs_running 9\nprocs_blocked 0\n";

TEST(Waiting, NobodyElseRuns) {
  EXPECT_FALSE(processors_are_shared(idle, 1));
  EXPECT_FALSE(processors_are_shared(idle, 2));
  EXPECT_FALSE(processors_are_shared(idle, 64));
}

TEST(Waiting, AnEighthOfTheProcessorsIsShared) {
  EXPECT_TRUE(processors_are_shared(one_more, 2));
  EXPECT_TRUE(processors_are_shared(one_more, 8));
  EXPECT_FALSE(processors_are_shared(one_more, 9));
  EXPECT_TRUE(processors_are_shared(eight_more, 64));
  EXPECT_FALSE(processors_are_shared(eight_more, 65));
}

TEST(Waiting, ATextWithoutTheCountIsNotShared) {
  EXPECT_FALSE(processors_are_shared("", 2));
  EXPECT_FALSE(processors_are_shared("procs_blocked 3\n", 2));
}

}  // namespace
}  // namespace cosmati::cpu
