// Reading and replacing files.
#include "src/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;

std::string text_of(MappedFile const& file) {
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

TEST(File, ReadsAndMapsWhatWasWritten) {
  TemporaryFolder const folder;
  std::string contents(200'000, 'x');
  contents[100'000] = '\0';
  write_atomically(folder / "a", contents);
  EXPECT_EQ(read_file(folder / "a"), contents);
  EXPECT_EQ(text_of(MappedFile(folder / "a")), contents);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(File, AnEmptyFileIsEmpty) {
  TemporaryFolder const folder;
  write_atomically(folder / "a", "");
  EXPECT_EQ(read_file(folder / "a"), "");
  EXPECT_TRUE(MappedFile(folder / "a").bytes().empty());
}

TEST(File, ErrorsNamePathAndReason) {
  TemporaryFolder const folder;
  std::string const missing = folder / "missing";
  for (std::string const& message :
       {error_of([&] { read_file(missing); }), error_of([&] { MappedFile file(missing); })}) {
    EXPECT_TRUE(contains(message, missing)) << message;
    EXPECT_TRUE(contains(message, "No such file")) << message;
  }
  EXPECT_TRUE(contains(error_of([&] { MappedFile file(folder.path()); }), "folder"));
  EXPECT_TRUE(contains(error_of([&] { read_file(folder.path()); }), "directory"));
  EXPECT_TRUE(contains(error_of([&] { MappedFile file("/dev/zero"); }), "not a regular file"));
}

TEST(File, APipeWithoutWriterIsRefusedAtOnce) {
  TemporaryFolder const folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error_of([&] { MappedFile file(folder / "pipe"); }), "not a regular file"));
}

TEST(File, AFailureLeavesTheOldContentsAndNothingElse) {
  TemporaryFolder const folder;
  write_atomically(folder / "a", "old");
  EXPECT_THROW(write_atomically(folder / "a",
                                [](FileWriter& writer) {
                                  writer.write("half of the n");
                                  throw std::runtime_error("stop");
                                }),
               std::runtime_error);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(File, TheOldContentsStandUntilTheNewAreComplete) {
  TemporaryFolder const folder;
  write_atomically(folder / "a", "old");
  MappedFile const mapped(folder / "a");
  write_atomically(folder / "a", [&](FileWriter& writer) {
    writer.write("new");
    EXPECT_EQ(read_file(folder / "a"), "old");
  });
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(text_of(mapped), "old");
}

// Limits the size of this process's files to `bytes` while the object exists: larger writes fail, as on a
// full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limited = before_;
    limited.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(FileSizeLimit const&) = delete;
  FileSizeLimit& operator=(FileSizeLimit const&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(File, AWriteThatFailsIsAnErrorWithReasonAndLeavesTheOldContents) {
  TemporaryFolder const folder;
  write_atomically(folder / "a", "old");
  std::string message;
  {
    FileSizeLimit const limit(1000);
    message = error_of([&] { write_atomically(folder / "a", std::string(2000, 'x')); }, ErrorCode::system);
  }
  EXPECT_TRUE(contains(message, folder / "a")) << message;
  EXPECT_TRUE(contains(message, "File too large")) << message;
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

// A pipe stands for all files that are not regular, so that the machine's devices are not put at risk.
TEST(File, APipeIsWrittenNotReplaced) {
  TemporaryFolder const folder;
  std::string const path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  int const reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_atomically(path, "contents");
  char buffer[16] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 8);
  EXPECT_STREQ(buffer, "contents");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(File, ALinkStaysALink) {
  TemporaryFolder const folder;
  write_atomically(folder / "target", "old");
  ASSERT_EQ(::symlink("target", (folder / "link").c_str()), 0);
  write_atomically(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "target"), "new");
}

TEST(File, KeepsThePermissionsOfWhatItReplaces) {
  TemporaryFolder const folder;
  write_atomically(folder / "a", "old");
  ASSERT_EQ(::chmod((folder / "a").c_str(), 0640), 0);
  write_atomically(folder / "a", "new");
  struct stat status {};
  ASSERT_EQ(::stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(File, CannotWriteIntoAMissingFolderOrOverAFolder) {
  TemporaryFolder const folder;
  std::string const message = error_of([&] { write_atomically(folder / "no/a", "x"); }, ErrorCode::system);
  EXPECT_TRUE(contains(message, "no/a")) << message;
  EXPECT_TRUE(contains(message, "No such file")) << message;
  error_of([&] { write_atomically(folder.path(), "x"); }, ErrorCode::system);
}

TEST(File, WritesIntoTheCurrentFolder) {
  TemporaryFolder const folder;
  auto const before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_atomically("plain-name", "x");
  std::filesystem::current_path(before);
  EXPECT_EQ(read_file(folder / "plain-name"), "x");
}

TEST(File, AppendsAtTheEnd) {
  TemporaryFolder const folder;
  append_to_file(folder / "a", "one");
  append_to_file(folder / "a", "two");
  EXPECT_EQ(read_file(folder / "a"), "onetwo");
  append_line(folder / "a", "three\n");
  append_line(folder / "a", "four\n");
  append_line(folder / "b", "five\n");
  EXPECT_EQ(read_file(folder / "a"), "onetwo\nthree\nfour\n");
  EXPECT_EQ(read_file(folder / "b"), "five\n");
}

TEST(File, SaysBeforeTheWorkWhatCannotBeWritten) {
  TemporaryFolder const folder;
  EXPECT_NO_THROW(check_writable(folder / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_NO_THROW(check_writable("/dev/null"));
  EXPECT_THROW(check_writable(folder / "none/new"), Error);
  EXPECT_THROW(check_writable(folder / "."), Error);
}

}  // namespace
}  // namespace cosmati::io
