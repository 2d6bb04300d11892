// The kernel cache with several processes that are killed while they fill it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "src/io/file.h"
#include "tests/jit/testing.h"

namespace cosmati::jit {
namespace {

using namespace testing;

constexpr int kernels = 12;
constexpr std::size_t image_bytes = 200000;  // large enough that a write takes some time

// Reads, rebuilds and evicts until it is killed; exits with status 1 on a wrong image.
[[noreturn]] void fill_until_killed(std::string const& folder, unsigned seed) {
  std::mt19937 random(seed);
  KernelCache cache({.folder = folder, .max_bytes = kernels / 2 * static_cast<long long>(image_bytes)},
                    [](Source const& source) { return expected_cubin(source, image_bytes); });
  for (;;) {
    Source const source = numbered_source(static_cast<int>(random() % kernels));
    if (cache.get(source).image != expected_cubin(source, image_bytes).image) ::_exit(1);
  }
}

pid_t start(std::string const& folder, unsigned seed) {
  pid_t const child = ::fork();
  if (child == 0) fill_until_killed(folder, seed);
  return child;
}

TEST(Processes, KilledAtAnyTimeTheyLeaveWholeEntriesOnly) {
  TemporaryFolder const folder;
  std::mt19937 random(1);
  constexpr int at_once = 3, rounds = 25;
  for (int round = 0; round < rounds; ++round) {
    pid_t children[at_once];
    for (pid_t& child : children) child = start(folder.path(), static_cast<unsigned>(random()));
    for (pid_t const child : children) {
      ASSERT_GT(child, 0);
      ::usleep(static_cast<useconds_t>(random() % 20000));
      ::kill(child, SIGKILL);
    }
    for (pid_t const child : children) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
          << "saw a wrong image, status " << status;
    }
    for (std::string const& name : folder.names()) {
      if (!is_entry_name(name)) continue;
      std::string const file = io::read_file(folder / name.c_str());
      std::optional<Entry> const entry = parse_entry(io::testing::bytes_of(file));
      ASSERT_TRUE(entry) << name;
      EXPECT_EQ(entry_name(entry->key), name);
    }
  }
  // Leftover files neither stop nor slow later processes; writing an entry removes its leftovers.
  for (std::string const& name : folder.names())
    if (is_entry_name(name)) {
      std::filesystem::remove(folder / name.c_str());
      break;
    }
  int compiled = 0;
  KernelCache cache({.folder = folder.path()}, [&](Source const& source) {
    ++compiled;
    return expected_cubin(source, image_bytes);
  });
  for (std::string const& name : folder.names())
    if (!is_entry_name(name))
      std::filesystem::last_write_time(folder / name.c_str(),
                                       std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < kernels; ++i)
      expect_same(cache.get(numbered_source(i)), expected_cubin(numbered_source(i), image_bytes));
  EXPECT_LE(compiled, kernels);
  EXPECT_EQ(folder.names().size(), static_cast<std::size_t>(kernels));
}

}  // namespace
}  // namespace cosmati::jit
