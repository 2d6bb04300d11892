// Files beside an output: what is in their place already, and whose it is.
#include "src/io/partial_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "src/io/file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;
namespace files = std::filesystem;

constexpr uid_t other_user = 65534;

// Runs `body` in a child, as another user if we are root; what it returns is the child's exit status.
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

// The message of the Error(system) that `call` throws; "" for none.
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
  void write_output() { PartialFile(output_, 0).append("new", 3); }
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
    file.append("abc", 3);
  }
  PartialFile file(output_, 2);
  file.append("XY", 2);
  file.finish();
  EXPECT_EQ(read_file(output_), "abXY");
  EXPECT_FALSE(files::exists(partial_));
  ProgressFile progress(progress_);
  progress.write("1 of 2");
  progress.write("2");
  EXPECT_EQ(progress.read(), "2");
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
  expect_both_refused("second name");
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

// The folder would let them be replaced.
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
                           refusal_of([&] { PartialFile(output_, 0).append(large.data(), large.size()); }),
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
