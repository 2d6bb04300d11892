// A failed launch leaves nothing behind: destructors in kernels have run, and the next launch works.
#include <atomic>
#include <memory>
#include <stdexcept>

#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

std::atomic<int> made = 0, destroyed = 0;

// A local object of a kernel whose destructor waits, like the guard of a lock or of a pipeline.
struct Local {
  Local() { ++made; }
  ~Local() {
    emulator::block_barrier();
    emulator::warp_collective("farewell", ~0U, nullptr, nullptr);
    emulator::wait(
        "never", [](void*) { return false; }, nullptr);
    emulator::check_access(emulator::shared_memory() + 1, 4);
    ++destroyed;
  }
};

enum class Mistake { exception, misalignment, standstill };

struct Params {
  Mistake mistake;
};

template <int threads>
COSMATI_KERNEL(threads, 1)
make_mistake(COSMATI_PARAMETER Params params) {
  Local const local;
  auto const memory = std::make_unique<int>(1);  // LeakSanitizer would report it
  emulator::copy_async(testing::shared<int>() + emulator::thread(), memory.get(), 4, 4);
  bool const culprit = emulator::thread() == threads / 2 && emulator::block().x == 1;
  if (culprit && params.mistake == Mistake::exception) throw std::runtime_error("thrown");
  if (culprit && params.mistake == Mistake::misalignment)
    emulator::check_access(emulator::shared_memory() + 2, 4);
  if (emulator::thread() % 2 == 0)
    emulator::warp_collective("even", 0x55555555U, nullptr, nullptr);
  else if (emulator::thread() % 3 == 0)
    emulator::wait(
        "never", [](void*) { return false; }, nullptr);
  emulator::block_barrier();
}

void expect_unwound(Mistake mistake, char const* said) {
  for (int host_threads : {1, 2, 4}) {
    made = destroyed = 0;
    std::string const report = testing::report_of(
        [&] { emulator::launch_kernel<make_mistake<64>>({4}, 64, 256, Params{mistake}, host_threads); });
    EXPECT_SAYS(report, said);
    EXPECT_GT(made, 0);
    EXPECT_EQ(made, destroyed);
  }
}

TEST(Unwind, AfterAnException) {
  expect_unwound(Mistake::exception, "(1, 0, 0), thread 32 (warp 1, lane 0): thrown");
}
TEST(Unwind, AfterAViolation) {
  expect_unwound(Mistake::misalignment, "(1, 0, 0), thread 32 (warp 1, lane 0): mis");
}
TEST(Unwind, AfterADeadlock) { expect_unwound(Mistake::standstill, "block (0, 0, 0): deadlock: "); }

TEST(Unwind, WhileTheCallerUnwinds) {
  struct Launcher {
    ~Launcher() { expect_unwound(Mistake::exception, "thrown"); }
  };
  try {
    Launcher const launcher;
    throw 1;
  } catch (int) {
  }
}

struct Lengths {
  int waits[4];  // number of waits of each block before it fails
};

template <int threads>
COSMATI_KERNEL(threads, 1)
fail_after(COSMATI_PARAMETER Lengths lengths) {
  for (int i = 0; i < lengths.waits[emulator::block().x]; ++i) emulator::block_barrier();
  if (emulator::thread() == 0) throw std::runtime_error("thrown");
}

// Independent of which host thread is first.
TEST(Unwind, OfSeveralBlocksThatFailTheFirstIsReported) {
  for (Lengths const lengths : {Lengths{{400, 0, 0, 0}}, Lengths{{400, 200, 0, 0}}, Lengths{{0, 300, 0, 5}}})
    for (int const host_threads : {1, 2, 4})
      for (int again = 0; again < 5; ++again) {
        std::string const report = testing::report_of(
            [&] { emulator::launch_kernel<fail_after<64>>({4}, 64, 0, lengths, host_threads); });
        EXPECT_SAYS(report, "block (0, 0, 0)");
      }
}

}  // namespace
}  // namespace cosmati
