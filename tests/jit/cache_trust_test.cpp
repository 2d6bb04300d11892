// Which entries the kernel cache trusts, and what it leaves behind if it cannot write.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "src/io/file.h"
#include "tests/jit/testing.h"

namespace cosmati::jit {
namespace {

using namespace testing;
namespace files = std::filesystem;

constexpr uid_t other_user = 65534;

class CacheTrust : public ::testing::Test {
 protected:
  KernelCache reader(CacheSettings settings) {
    return KernelCache(std::move(settings), compiler_.function());
  }
  // Writes a kernel that the compiler does not make of source 1, under its name and with a correct checksum.
  void poison() {
    files::create_directories(cache_);
    ::chmod(cache_.c_str(), 0755);
    Cubin cubin = expected_cubin(numbered_source(1));
    cubin.lowered_name = "poison";
    io::write_atomically(entry_, format_entry(key_of(numbered_source(1)), cubin));
    ::chmod(entry_.c_str(), 0644);
  }
  // Checks the result and the messages of a process that requests the kernel twice.
  void expect_ignored(CacheSettings const& settings, std::string const& part) {
    KernelCache cache = reader(settings);
    ::testing::internal::CaptureStderr();
    Cubin const first = cache.get(numbered_source(1)), second = cache.get(numbered_source(1));
    std::string const said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(first.lowered_name, expected_cubin(numbered_source(1)).lowered_name);
    EXPECT_FALSE(first.from_cache);
    EXPECT_NE(second.lowered_name, "poison");
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_TRUE(contains(said, cache_) && contains(said, part)) << said;
  }
  void expect_taken(CacheSettings const& settings) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(reader(settings).get(numbered_source(1)).lowered_name, "poison");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
  CacheSettings own() const { return {.folder = cache_}; }
  CacheSettings shared() const { return {.folder = folder_ / "own", .shared_folders = {cache_}}; }

  TemporaryFolder folder_;
  std::string cache_ = folder_ / "cache";
  std::string entry_ = cache_ + "/" + entry_name(key_of(numbered_source(1)));
  FakeCompiler compiler_;
};

TEST_F(CacheTrust, WhatThisUserAloneMayWriteIsTaken) {
  poison();
  expect_taken(own());
  expect_taken(shared());
}

TEST_F(CacheTrust, FoldersThatOthersMayWriteAreIgnored) {
  for (mode_t const mode : {0777U, 01777U, 0775U, 0757U})
    for (CacheSettings const& settings : {own(), shared()}) {
      poison();
      ::chmod(cache_.c_str(), mode);
      expect_ignored(settings, "others may write");
      files::remove_all(folder_ / "own");
    }
}

TEST_F(CacheTrust, EntriesThatOthersMayWriteAreIgnored) {
  for (mode_t const mode : {0666U, 0664U, 0646U})
    for (CacheSettings const& settings : {own(), shared()}) {
      poison();
      ::chmod(entry_.c_str(), mode);
      expect_ignored(settings, entry_);
      files::remove_all(folder_ / "own");
    }
}

TEST_F(CacheTrust, LinksInThePlaceOfAnEntryAreIgnored) {
  poison();
  files::rename(entry_, folder_ / "elsewhere");
  files::create_symlink(folder_ / "elsewhere", entry_);
  EXPECT_FALSE(reader(shared()).get(numbered_source(1)).from_cache);
}

TEST_F(CacheTrust, FoldersAndEntriesOfAnotherUserAreIgnored) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  for (CacheSettings const& settings : {own(), shared()})
    for (std::string const& given : {cache_, entry_}) {
      poison();
      ASSERT_EQ(::chown(given.c_str(), other_user, other_user), 0);
      expect_ignored(settings, "belongs to user 65534");
      files::remove_all(cache_);
      files::remove_all(folder_ / "own");
    }
}

TEST_F(CacheTrust, AnotherUserTakesWhatIsRoots) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  poison();
  ::chmod(folder_.path().c_str(), 0755);
  pid_t const child = ::fork();
  if (child == 0) {
    if (::setresuid(other_user, other_user, other_user) != 0) ::_exit(2);
    ::_exit(reader({.shared_folders = {cache_}}).get(numbered_source(1)).lowered_name == "poison" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(CacheTrust, AnyUmaskMakesACacheThatIsTaken) {
  mode_t const before = ::umask(0);
  EXPECT_FALSE(reader(own()).get(numbered_source(1)).from_cache);
  EXPECT_TRUE(reader(own()).get(numbered_source(1)).from_cache);
  ::umask(before);
}

// Runs in a child process, because the limit is permanent. Exit status 0: the kernel was compiled with a
// warning, and no file is left.
int store_beyond_limit(CacheSettings const& settings) {
  rlimit const limit{4096, 4096};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  KernelCache cache(settings, [](Source const& source) { return expected_cubin(source, 100000); });
  Cubin const cubin = cache.get(numbered_source(1));
  if (cubin.image.size() != 100000 || !contains(cubin.cache_warning, "cannot be written")) return 1;
  sigset_t pending, blocked;
  ::sigpending(&pending);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (sigismember(&pending, SIGXFSZ) != 0 || sigismember(&blocked, SIGXFSZ) != 0) return 3;
  return files::is_empty(settings.folder) ? 0 : 4;
}

TEST_F(CacheTrust, AFileSizeLimitIsAWarningAndLeavesNothing) {
  pid_t const child = ::fork();
  if (child == 0) ::_exit(store_beyond_limit(own()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace cosmati::jit
