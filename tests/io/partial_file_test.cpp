// Partial files next to an output: what exists in their place, and who owns it.
#include "src/io/partial_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/io/file.h"
#include "src/io/placed_writer.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;
namespace files = std::filesystem;

constexpr uid_t other_user = 65534;

// Runs `body` in a child process, as another user if this process is root; returns `body`'s result as the
// exit status.
int in_child(bool as_other_user, std::function<int()> const& body) {
  pid_t const child = ::fork();
  if (child == 0) {
    ::alarm(20);
    if (as_other_user && (::setresgid(other_user, other_user, other_user) != 0 ||
                          ::setresuid(other_user, other_user, other_user) != 0))
      ::_exit(99);
    int result = 98;
    try {
      result = body();
    } catch (...) {
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The message of the Error(system) that `call` throws; empty if it throws none.
template <class Call>
std::string refusal_of(Call&& call) {
  try {
    call();
  } catch (Error const& error) {
    return error.code() == ErrorCode::system ? error.what() : "";
  }
  return "";
}

class PartialFiles : public ::testing::Test {
 protected:
  void write_output() { PartialFile(output_, 0).write(0, "new", 3); }
  void write_progress() { ProgressFile(progress_).write("new"); }
  void expect_both_refused(std::string const& part) {
    std::string const output = refusal_of([&] { write_output(); });
    std::string const progress = refusal_of([&] { write_progress(); });
    EXPECT_TRUE(contains(output, partial_) && contains(output, part)) << output;
    EXPECT_TRUE(contains(progress, progress_) && contains(progress, part)) << progress;
  }

  TemporaryFolder folder_;
  std::string output_ = folder_ / "images.npy", partial_ = output_ + ".partial",
              progress_ = output_ + ".progress", victim_ = folder_ / "victim";
};

TEST_F(PartialFiles, AreWrittenContinuedAndRenamed) {
  {
    PartialFile file(output_, 0);
    file.write(1, "bcd", 3);
    file.write(0, "a", 1);
  }
  PartialFile file(output_, 4);
  file.write(2, "XY", 2);
  file.write(4, "rest", 4);
  file.finish(4);
  EXPECT_EQ(read_file(output_), "abXY");
  EXPECT_FALSE(files::exists(partial_));
  ProgressFile progress(progress_);
  progress.write("1 of 2");
  progress.write("2");
  EXPECT_EQ(progress.read(), "2");
}

TEST_F(PartialFiles, AreJoinedWhereTheyAre) {
  EXPECT_EQ(PartialFile::join(output_), nullptr);
  EXPECT_FALSE(files::exists(partial_));
  PartialFile file(output_, 0);
  file.write(0, "abc", 3);
  auto const other = PartialFile::join(output_);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->read(1, 10), "bc");
  other->write(5, "f", 1);
  file.finish(6);
  EXPECT_EQ(read_file(output_), std::string("abc\0\0f", 6));
  files::create_symlink(victim_, partial_);
  EXPECT_EQ(PartialFile::join(output_), nullptr);
}

// Through mapped pages if the file is in memory, otherwise by system calls; across the ends of mappings.
TEST(PlacedWriter, ManyThreadsWriteWhereTheyShould) {
  for (std::string const folder : {"/tmp", "/dev/shm"}) {
    std::string const path = folder + "/cosmati-placed-" + std::to_string(::getpid());
    int const descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ASSERT_GE(descriptor, 0) << path;
    ::unlink(path.c_str());
    constexpr unsigned long long begin = (1ULL << 30) - 300'000;
    constexpr std::size_t piece = 70'001, pieces = 24, rows = 7, row = 30'000, gap = 1000;
    std::vector<std::jthread> threads;
    {
      PlacedWriter writer(descriptor);
      for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
          for (std::size_t i = static_cast<std::size_t>(thread); i < pieces; i += 4) {
            std::string const text(piece, static_cast<char>('a' + i));
            EXPECT_TRUE(writer.write(begin + i * piece, text.data(), text.size()));
          }
          std::string const text(rows * row, static_cast<char>('0' + thread));
          EXPECT_TRUE(writer.write_rows(static_cast<unsigned long long>(thread) * row, 4 * row + gap, rows,
                                        text.data(), row));
        });
      threads.clear();
    }
    std::string found(piece * pieces, ' '), expected, grid(rows * (4 * row + gap), ' '), drawn;
    ASSERT_EQ(::pread(descriptor, found.data(), found.size(), static_cast<off_t>(begin)),
              static_cast<ssize_t>(found.size()));
    for (std::size_t i = 0; i < pieces; ++i) expected.append(piece, static_cast<char>('a' + i));
    EXPECT_TRUE(found == expected) << folder;
    ASSERT_EQ(::pread(descriptor, grid.data(), grid.size(), 0), static_cast<ssize_t>(grid.size()));
    for (std::size_t i = 0; i < rows; ++i) {
      for (char thread : {'0', '1', '2', '3'}) drawn.append(row, thread);
      drawn.append(gap, '\0');
    }
    EXPECT_TRUE(grid == drawn) << folder;
    ::close(descriptor);
  }
}

TEST_F(PartialFiles, LinksAreNotFollowed) {
  write_atomically(victim_, "precious");
  for (std::string const& path : {partial_, progress_}) files::create_symlink(victim_, path);
  expect_both_refused("symbolic link");
  EXPECT_EQ(read_file(victim_), "precious");
}

TEST_F(PartialFiles, SecondNamesOfAFileAreNotWritten) {
  write_atomically(victim_, "precious");
  for (std::string const& path : {partial_, progress_}) files::create_hard_link(victim_, path);
  expect_both_refused("hard link");
  EXPECT_EQ(read_file(victim_), "precious");
}

TEST_F(PartialFiles, PipesAndFoldersAreRefusedAtOnce) {
  for (std::string const& path : {partial_, progress_}) ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(in_child(false,
                     [&] {
                       expect_both_refused("not a regular file");
                       return HasFailure() ? 1 : 0;
                     }),
            0);
  for (std::string const& path : {partial_, progress_}) {
    files::remove(path);
    files::create_directory(path);
  }
  expect_both_refused("");
}

TEST_F(PartialFiles, FilesOfAnotherUserAreLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ::chmod(folder_.path().c_str(), 0777);
  for (std::string const& path : {partial_, progress_}) {
    write_atomically(path, "theirs");
    ::chmod(path.c_str(), 0666);
    ASSERT_EQ(::chown(path.c_str(), other_user, other_user), 0);
  }
  expect_both_refused("belongs to another user");
  EXPECT_EQ(read_file(partial_), "theirs");
  for (std::string const& path : {partial_, progress_}) ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  EXPECT_EQ(in_child(true,
                     [&] {
                       expect_both_refused("belongs to another user");
                       return HasFailure() ? 1 : 0;
                     }),
            0);
}

// The folder's permissions would allow replacing them.
TEST_F(PartialFiles, ReadOnlyOutputsOfAnotherUserAreNotReplaced) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ::chmod(folder_.path().c_str(), 0777);
  write_atomically(output_, "theirs");
  ::chmod(output_.c_str(), 0444);
  auto const refused = [&] {
    std::string const outputs[] = {refusal_of([&] { write_output(); }),
                                   refusal_of([&] { write_atomically(output_, "mine"); }),
                                   refusal_of([&] { check_writable(output_); })};
    for (std::string const& message : outputs)
      EXPECT_TRUE(contains(message, "belongs to another user")) << message;
    EXPECT_EQ(read_file(output_), "theirs");
    EXPECT_FALSE(files::exists(partial_));
    return HasFailure() ? 1 : 0;
  };
  EXPECT_EQ(in_child(true, refused), 0);
  ASSERT_EQ(::chown(output_.c_str(), other_user, other_user), 0);
  refused();
  ::chmod(output_.c_str(), 0644);
  write_atomically(output_, "mine");  // root may write it
  EXPECT_EQ(read_file(output_), "mine");
}

TEST_F(PartialFiles, AFileSizeLimitIsAnErrorAndNoSignal) {
  EXPECT_EQ(in_child(false,
                     [&] {
                       rlimit const limit{4096, 4096};
                       if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
                       std::string const large(10000, 'x');
                       std::string const messages[] = {
                           refusal_of([&] { PartialFile(output_, 0).write(0, large.data(), large.size()); }),
                           refusal_of([&] { write_atomically(victim_, large); }),
                           refusal_of([&] { append_to_file(folder_ / "lines", large); })};
                       for (std::string const& message : messages)
                         if (!contains(message, "cannot be written")) return 1;
                       return files::exists(victim_) ? 3 : 0;
                     }),
            0);
}

}  // namespace
}  // namespace cosmati::io
