// Tuning files on disk: many concurrent writers, and files that are not tuning files.
#include "src/io/tuning_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati {
namespace {

std::string line(int m, int second) {
  return "gemm a=f32/k4 b=f32/k4 c=none d=f32/4 sum=f32 epilogue=light m=" + std::to_string(64 * m) +
         " n=64 k=64 batch=1 gpu=\"a GPU, 9.0, 132 multiprocessors\" kernel=double_buffered "
         "policy=block_m=64 splits=1 measured=64x64x64x1 seconds=1e-6 planned=1e-6 driver=d version=v "
         "time=2026-01-01T00:00:" +
         std::to_string(second) + "Z\n";
}

std::string fresh(char const* name) {
  std::string const path = ::testing::TempDir() + name;
  std::filesystem::remove(path);
  return path;
}

TEST(TuningFile, WritersWaitForEachOther) {
  std::string const path = fresh("tuning_writers.txt");
  constexpr int writers = 6, lines = 10;
  for (int writer = 0; writer < writers; ++writer)
    if (fork() == 0) {
      for (int i = 0; i < lines; ++i)
        io::add_to_tuning(path,
                          TuningTable::parse(line(1 + writer * lines + i, 10) + line(1000, 10 + writer), ""));
      _exit(0);
    }
  for (int writer = 0; writer < writers; ++writer) {
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  TuningTable const table = io::read_tuning(path);
  EXPECT_EQ(table.size(), 1U + writers * lines) << "no line is lost";
  EXPECT_NE(table.text().find("00:00:15Z"), std::string::npos) << "the newest of a class stays";
  for (auto const& entry : std::filesystem::directory_iterator(::testing::TempDir()))
    EXPECT_EQ(entry.path().string().find("tuning_writers.txt."), std::string::npos) << entry.path();
}

TEST(TuningFile, IsMadeWhereThereIsNone) {
  std::string const path = fresh("tuning_new.txt");
  EXPECT_EQ(io::add_to_tuning(path, {}).size(), 0U);
  EXPECT_EQ(io::read_tuning(path).size(), 0U);
  EXPECT_EQ(io::add_to_tuning(path, TuningTable::parse(line(1, 10), "")).size(), 1U);
}

TEST(TuningFile, WhatIsNoTuningFileIsLeftAlone) {
  std::string const path = fresh("tuning_bad.txt");
  std::string const text = line(1, 10) + "something else\n";
  io::write_atomically(path, text);
  try {
    io::add_to_tuning(path, {});
    ADD_FAILURE() << "was taken";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    EXPECT_EQ(std::string(error.what()).find(path + ", line 2: "), 0U) << error.what();
  }
  EXPECT_EQ(io::read_file(path), text);
  EXPECT_THROW(io::add_to_tuning(::testing::TempDir(), {}), Error);
  EXPECT_THROW(io::add_to_tuning("/nowhere/tuning.txt", {}), Error);
  EXPECT_THROW(io::add_to_tuning("/dev/null", {}), Error);
  EXPECT_THROW(io::read_tuning("/nowhere/tuning.txt"), Error);
}

}  // namespace
}  // namespace cosmati
