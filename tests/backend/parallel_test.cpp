// Loops over host threads.
#include "src/backend/cpu/runtime/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace cosmati::cpu {
namespace {

TEST(Parallel, EachPartRunsOnce) {
  std::atomic<int> ran[5] = {};
  parallel_parts(5, [&](int part, int parts) {
    EXPECT_EQ(parts, 5);
    ++ran[part];
  });
  for (auto const& count : ran) EXPECT_EQ(count, 1);
}

TEST(Parallel, TheLowestPartThatThrewIsHeard) {
  for (int parts : {1, 2, 7}) {
    std::atomic<int> ran = 0;
    std::string said;
    try {
      parallel_parts(parts, [&](int part, int) {
        ++ran;
        if (part > 0 || parts == 1) throw std::runtime_error("part " + std::to_string(part));
      });
    } catch (std::runtime_error const& error) {
      said = error.what();
    }
    EXPECT_EQ(ran, parts);
    EXPECT_EQ(said, parts == 1 ? "part 0" : "part 1");
  }
}

}  // namespace
}  // namespace cosmati::cpu
