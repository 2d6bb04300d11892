// The kernel cache in one process, with a compiler that only counts calls.
#include "src/jit/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "src/io/file.h"
#include "tests/jit/testing.h"

namespace cosmati::jit {
namespace {

using namespace testing;
namespace files = std::filesystem;

std::string path_of(std::string const& folder, Source const& source) {
  return folder + "/" + entry_name(key_of(source));
}

void make_old(std::string const& path, int minutes) {
  files::last_write_time(path, files::file_time_type::clock::now() - std::chrono::minutes(minutes));
}

long long age_in_seconds(std::string const& path) {
  return std::chrono::duration_cast<std::chrono::seconds>(files::file_time_type::clock::now() -
                                                          files::last_write_time(path))
      .count();
}

class CacheTest : public ::testing::Test {
 protected:
  KernelCache cache(CacheSettings settings) { return KernelCache(std::move(settings), compiler_.function()); }
  KernelCache cache() { return cache({.folder = own_}); }

  TemporaryFolder folder_;
  std::string own_ = folder_ / "own/below";
  FakeCompiler compiler_;
};

TEST_F(CacheTest, CompilesOnceAndFindsItEverAfter) {
  Source const source = numbered_source(1);
  KernelCache first = cache();
  Cubin const compiled = first.get(source);
  EXPECT_FALSE(compiled.from_cache);
  EXPECT_EQ(compiled.cache_warning, "");
  for (int i = 0; i < 3; ++i) {
    Cubin const found = first.get(source, false);
    EXPECT_TRUE(found.from_cache);
    expect_same(found, expected_cubin(source));
  }
  expect_same(cache().get(source), expected_cubin(source));
  EXPECT_EQ(compiler_.compiled, 1);
  EXPECT_EQ(first.statistics().files, 1);
  EXPECT_EQ(first.statistics().bytes, static_cast<long long>(files::file_size(path_of(own_, source))));
}

TEST_F(CacheTest, CompilingAgainReplacesTheEntry) {
  Source const source = numbered_source(1);
  (void)cache().get(source);
  auto const inode = [&] {
    struct stat status {};
    return ::stat(path_of(own_, source).c_str(), &status) == 0 ? status.st_ino : 0;
  };
  auto const before = inode();
  EXPECT_FALSE(cache().compile_again(source).from_cache);
  EXPECT_EQ(compiler_.compiled, 2);
  EXPECT_NE(inode(), before);
  expect_same(cache().get(source, false), expected_cubin(source));
}

TEST_F(CacheTest, EverySourceHasItsOwnKernel) {
  KernelCache one = cache();
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 20; ++i) expect_same(one.get(numbered_source(i)), expected_cubin(numbered_source(i)));
  EXPECT_EQ(compiler_.compiled, 20);
}

TEST_F(CacheTest, AMissThatMayNotBeCompiledIsAnError) {
  std::string const message =
      error_of([&] { cache().get(numbered_source(3), false); }, ErrorCode::unavailable);
  EXPECT_TRUE(contains(message, "kernel<3>") && contains(message, own_) && contains(message, "sm_90a"))
      << message;
  EXPECT_EQ(compiler_.compiled, 0);
}

TEST_F(CacheTest, DamageAtAnyByteIsRebuilt) {
  Source const source = numbered_source(1);
  KernelCache one = cache();
  one.get(source);
  std::string const path = path_of(own_, source), good = io::read_file(path);
  int damages = 0;
  auto const expect_rebuilt = [&](std::string const& contents) {
    io::write_atomically(path, contents);
    Cubin const cubin = one.get(source);
    EXPECT_FALSE(cubin.from_cache);
    expect_same(cubin, expected_cubin(source));
    EXPECT_EQ(io::read_file(path), good);
    EXPECT_EQ(compiler_.compiled, 1 + ++damages);
  };
  for (std::size_t at = 0; at < good.size(); at += 3) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    expect_rebuilt(flipped);
    expect_rebuilt(good.substr(0, at));
  }
  expect_rebuilt("something else altogether");
}

TEST_F(CacheTest, AnEntryOfAnotherKeyUnderThisNameIsNoHit) {
  Source const source = numbered_source(1), other = numbered_source(2);
  KernelCache one = cache();
  one.get(other);
  files::rename(path_of(own_, other), path_of(own_, source));
  expect_same(one.get(source), expected_cubin(source));
  EXPECT_EQ(compiler_.compiled, 2);
}

TEST_F(CacheTest, AFolderInThePlaceOfAnEntryIsAWarning) {
  Source const source = numbered_source(1);
  files::create_directories(path_of(own_, source));
  Cubin const cubin = cache().get(source);
  expect_same(cubin, expected_cubin(source));
  EXPECT_TRUE(contains(cubin.cache_warning, "not a regular file")) << cubin.cache_warning;
}

TEST_F(CacheTest, APipeInThePlaceOfAnEntryDoesNotBlock) {
  Source const source = numbered_source(1);
  files::create_directories(own_);
  ASSERT_EQ(::mkfifo(path_of(own_, source).c_str(), 0600), 0);
  expect_same(cache().get(source), expected_cubin(source));
}

TEST_F(CacheTest, SharedFoldersAreReadAndNotWritten) {
  std::string const shared = folder_ / "shared";
  cache({.folder = shared}).get(numbered_source(1));
  make_old(path_of(shared, numbered_source(1)), 10);
  ::chmod(shared.c_str(), 0555);
  KernelCache both = cache({.folder = own_, .shared_folders = {folder_ / "nothing", shared}});
  EXPECT_TRUE(both.get(numbered_source(1), false).from_cache);
  EXPECT_GE(age_in_seconds(path_of(shared, numbered_source(1))), 590);
  both.get(numbered_source(2));
  EXPECT_EQ(cache_statistics(shared).files, 1);
  EXPECT_EQ(both.statistics().files, 1);
  ::chmod(shared.c_str(), 0755);
}

TEST_F(CacheTest, AFolderThatCannotBeWrittenIsOneWarning) {
  io::write_atomically(folder_ / "file", "not a folder");
  KernelCache one = cache({.folder = folder_ / "file/below"});
  Cubin const first = one.get(numbered_source(1));
  expect_same(first, expected_cubin(numbered_source(1)));
  EXPECT_TRUE(contains(first.cache_warning, folder_ / "file/below")) << first.cache_warning;
  EXPECT_EQ(one.get(numbered_source(2)).cache_warning, "");
  EXPECT_EQ(one.get(numbered_source(1)).cache_warning, "");
  EXPECT_EQ(compiler_.compiled, 3);
}

TEST_F(CacheTest, WithoutPermissionItWorksUncached) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  files::create_directories(own_);
  ::chmod(own_.c_str(), 0555);
  EXPECT_NE(cache().get(numbered_source(1)).cache_warning, "");
  ::chmod(own_.c_str(), 0755);
}

TEST_F(CacheTest, WithoutAFolderItWorksUncached) {
  KernelCache none = cache({});
  EXPECT_TRUE(contains(none.get(numbered_source(1)).cache_warning, "HOME"));
  EXPECT_FALSE(none.get(numbered_source(1)).from_cache);
  KernelCache nothing_kept = cache({.folder = own_, .max_bytes = 0});
  EXPECT_EQ(nothing_kept.get(numbered_source(1)).cache_warning, "");
  EXPECT_EQ(nothing_kept.statistics().files, 0);
}

TEST_F(CacheTest, WhatWasNotUsedForTheLongestTimeGoesFirst) {
  compiler_.bytes = 10000;
  KernelCache one = cache({.folder = own_, .max_bytes = 105000});
  for (int i = 0; i < 10; ++i) {
    one.get(numbered_source(i));
    make_old(path_of(own_, numbered_source(i)), 100 - i);
  }
  EXPECT_EQ(one.statistics().files, 10);
  one.get(numbered_source(0), false);  // used, and therefore the newest
  EXPECT_LE(age_in_seconds(path_of(own_, numbered_source(0))), 5);
  one.get(numbered_source(10));  // over the limit: evicts down to nine tenths
  EXPECT_LE(one.statistics().bytes, 94500);
  EXPECT_EQ(one.statistics().files, 9);
  for (int gone : {1, 2}) EXPECT_FALSE(files::exists(path_of(own_, numbered_source(gone)))) << gone;
  for (int kept : {0, 3, 9, 10}) EXPECT_TRUE(files::exists(path_of(own_, numbered_source(kept)))) << kept;
}

TEST_F(CacheTest, ANewProcessCountsWhatIsThere) {
  compiler_.bytes = 10000;
  cache().get_all(std::vector<Source>{numbered_source(0), numbered_source(1), numbered_source(2)}, 2);
  KernelCache small = cache({.folder = own_, .max_bytes = 25000});
  small.get(numbered_source(3));
  EXPECT_LE(small.statistics().bytes, 25000);
  EXPECT_TRUE(small.get(numbered_source(3), false).from_cache);
}

TEST_F(CacheTest, AnEntryLargerThanTheCacheIsAWarning) {
  KernelCache small = cache({.folder = own_, .max_bytes = 50});
  EXPECT_TRUE(contains(small.get(numbered_source(1)).cache_warning, "exceeds the limit of the cache"));
  EXPECT_EQ(small.statistics().files, 0);
}

TEST_F(CacheTest, HitsAreTouchedAtMostOnceAMinute) {
  KernelCache one = cache();
  std::string const path = path_of(own_, numbered_source(1));
  one.get(numbered_source(1));
  auto const written = files::last_write_time(path);
  one.get(numbered_source(1));
  EXPECT_EQ(files::last_write_time(path), written);
  make_old(path, 2);
  one.get(numbered_source(1));
  EXPECT_LE(age_in_seconds(path), 5);
}

TEST_F(CacheTest, OldTemporaryFilesAreRemovedAndForeignFilesStay) {
  files::create_directories(own_);
  for (char const* name : {".cosmati-0011223344556677.tmp", ".cosmati-8899aabbccddeeff.tmp", "notes.txt"})
    io::write_atomically(own_ + "/" + name, "contents");
  make_old(own_ + "/.cosmati-0011223344556677.tmp", 61);
  make_old(own_ + "/notes.txt", 100000);
  compiler_.bytes = 2000;
  KernelCache one = cache({.folder = own_, .max_bytes = 5000});
  for (int i = 0; i < 5; ++i) one.get(numbered_source(i));
  EXPECT_FALSE(files::exists(own_ + "/.cosmati-0011223344556677.tmp"));
  EXPECT_TRUE(files::exists(own_ + "/.cosmati-8899aabbccddeeff.tmp"));  // its writer may still be running
  EXPECT_TRUE(files::exists(own_ + "/notes.txt"));
}

TEST_F(CacheTest, ThreadsThatAskForTheSameCompileOnce) {
  compiler_.duration = std::chrono::milliseconds(50);
  KernelCache one = cache();
  std::vector<Source> const same(16, numbered_source(1));
  for (Cubin const& cubin : one.get_all(same, 16)) expect_same(cubin, expected_cubin(numbered_source(1)));
  EXPECT_EQ(compiler_.compiled, 1);
  KernelCache none = cache({});
  none.get_all(same, 16);
  EXPECT_EQ(compiler_.compiled, 2);
}

TEST_F(CacheTest, ManyThreadsWithManyKernelsAndLittleRoom) {
  compiler_.bytes = 3000;
  std::vector<Source> sources;
  for (int i = 0; i < 400; ++i) sources.push_back(numbered_source(i * 7 % 40));
  KernelCache one = cache({.folder = own_, .max_bytes = 60000}),
              other = cache({.folder = own_, .max_bytes = 60000});
  std::jthread const beside([&] { other.get_all(sources, 4); });
  std::vector<Cubin> const cubins = one.get_all(sources, 4);
  for (std::size_t i = 0; i < cubins.size(); ++i) expect_same(cubins[i], expected_cubin(sources[i], 3000));
}

TEST_F(CacheTest, ACompilerErrorReachesEveryoneAndIsNotKept) {
  std::atomic<int> calls = 0;
  KernelCache one({.folder = own_}, [&](Source const& source) -> Cubin {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (++calls == 1) throw Error(ErrorCode::bad_request, "no such function");
    return expected_cubin(source);
  });
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        try {
          one.get(numbered_source(1));
        } catch (Error const&) {
          ++errors;
        }
      });
  }
  EXPECT_GE(errors, 1);
  expect_same(one.get(numbered_source(1)), expected_cubin(numbered_source(1)));
}

// Restores the environment at the end.
class Environment {
 public:
  Environment(char const* name, char const* value) : name_(name) {
    if (char const* const before = std::getenv(name)) before_ = before, was_set_ = true;
    if (value != nullptr)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  ~Environment() {
    if (was_set_)
      ::setenv(name_, before_.c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Environment(Environment const&) = delete;
  Environment& operator=(Environment const&) = delete;

 private:
  char const* name_;
  std::string before_;
  bool was_set_ = false;
};

TEST(CacheSettings, TheFolderIsThatOfTheNearestSetting) {
  Environment const home("HOME", "/home/someone"), all("XDG_CACHE_HOME", nullptr),
      own("COSMATI_CACHE", nullptr);
  EXPECT_EQ(cache_folder(), "/home/someone/.cache/cosmati");
  {
    Environment const relative("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(cache_folder(), "/home/someone/.cache/cosmati");
  }
  Environment const set_all("XDG_CACHE_HOME", "/var/all");
  EXPECT_EQ(cache_folder(), "/var/all/cosmati");
  Environment const set_own("COSMATI_CACHE", "own");
  EXPECT_EQ(cache_folder(), "own");
  EXPECT_EQ(cache_folder("chosen"), "chosen");
}

TEST(CacheSettings, SharedFoldersAndSizeComeFromTheEnvironment) {
  Environment const shared("COSMATI_CACHE_SHARED", "/a::/b b:");
  EXPECT_EQ(cache_settings("x").shared_folders, (std::vector<std::string>{"/a", "/b b"}));
  Environment const unset("COSMATI_CACHE_SIZE", nullptr);
  EXPECT_EQ(cache_settings("x").max_bytes, 1LL << 30);
  for (auto const& [text, bytes] : {std::pair{"0", 0LL},
                                    {"1000", 1000LL},
                                    {"20K", 20480LL},
                                    {"3M", 3LL << 20},
                                    {"2G", 2LL << 30},
                                    {"1T", 1LL << 40}}) {
    Environment const size("COSMATI_CACHE_SIZE", text);
    EXPECT_EQ(cache_settings("x").max_bytes, bytes) << text;
  }
  for (char const* text : {"-1", "many", "1X", "1GB", "1.5G", " 1", "99999999999999999999", "9999999999T"}) {
    Environment const size("COSMATI_CACHE_SIZE", text);
    std::string const message = error_of([] { cache_settings("x"); }, ErrorCode::bad_request);
    EXPECT_TRUE(contains(message, text)) << message;
  }
}

}  // namespace
}  // namespace cosmati::jit
