// Inputs that never end, are truncated, keep a reader waiting, or expand to far more than their size.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cosmati/ops/device.h"
#include "src/io/file.h"
#include "src/io/image/image.h"
#include "src/io/json_lines.h"
#include "src/io/tuning_file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;

TEST(Limits, AFileThatIsCutShortAfterItWasOpenedKeepsItsBytes) {
  TemporaryFolder const folder;
  std::string const path = folder / "array";
  write_atomically(path, std::string(1 << 20, 'x'));
  MappedFile const file(path);
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  std::size_t count = 0;
  for (std::byte const byte : file.bytes()) count += byte == std::byte{'x'};
  EXPECT_EQ(count, std::size_t{1} << 20);
}

TEST(Limits, ADeviceThatNeverEndsIsASentence) {
  EXPECT_TRUE(contains(error_of([] { read_file("/dev/zero"); }), "without ending"));
  EXPECT_TRUE(contains(error_of([] { read_tuning("/dev/zero"); }), "without ending"));
  EXPECT_TRUE(contains(error_of([] { describe_gpu("/dev/zero"); }), "not a regular file"));
}

TEST(Limits, APipeWithoutAWriterIsASentence) {
  TemporaryFolder const folder;
  std::string const path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  auto const begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(contains(error_of([&] { read_file(path); }), "no process opened for writing"));
  EXPECT_TRUE(contains(error_of([&] { describe_gpu(path); }), "not a regular file"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(Limits, APipeIsReadToItsEndHoweverSlowlyItComes) {
  TemporaryFolder const folder;
  std::string const path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::jthread const writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the reader waits for a writer
    int const descriptor = ::open(path.c_str(), O_WRONLY);
    for (char const* part : {"one ", "two ", "three"}) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // then it waits for data
      if (::write(descriptor, part, std::strlen(part)) < 0) break;
    }
    ::close(descriptor);
  });
  EXPECT_EQ(read_file(path), "one two three");
}

TEST(Limits, LongLinesAreShortSentences) {
  TemporaryFolder const folder;
  std::string const path = folder / "long";
  write_atomically(path, std::string(30'000'000, '1'));
  for (std::string const& message :
       {error_of([&] { read_tuning(path); }),
        error_of([&] { parse_json_lines(read_file(path), path, [](std::size_t, nlohmann::json&&) {}); }),
        error_of([&] { describe_gpu(path); })}) {
    EXPECT_TRUE(contains(message, "30000000 bytes")) << message.substr(0, 200);
    EXPECT_LT(message.size(), 400u);
  }
}

std::string big_endian(unsigned long value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
  return text;
}

std::string png_chunk(std::string const& content) {
  auto const* const bytes = reinterpret_cast<Bytef const*>(content.data());
  return big_endian(content.size() - 4) + content +
         big_endian(::crc32(0, bytes, static_cast<uInt>(content.size())));
}

// A black RGBA picture, which deflates to a thousandth of its size.
std::string black_png(unsigned long side) {
  std::string const pixels(side * (1 + 4 * side), '\0');
  uLongf bytes = ::compressBound(pixels.size());
  std::string deflated(bytes, '\0');
  ::compress2(reinterpret_cast<Bytef*>(deflated.data()), &bytes,
              reinterpret_cast<Bytef const*>(pixels.data()), pixels.size(), 1);
  deflated.resize(bytes);
  return "\x89PNG\r\n\x1a\n" +
         png_chunk("IHDR" + big_endian(side) + big_endian(side) + std::string("\x8\x6\0\0\0", 5)) +
         png_chunk("IDAT" + deflated) + png_chunk("IEND");
}

TEST(Limits, PicturesBeyondALimitThatCanBeRaisedAreRefused) {
  std::string const file = black_png(1000);
  ::setenv("COSMATI_MAX_IMAGE", "3M", 1);
  std::string const message = error_of([&] { decode_png(bytes_of(file), "black.png"); });
  EXPECT_TRUE(contains(message, "1000 x 1000") && contains(message, "COSMATI_MAX_IMAGE allows 3145728"))
      << message;
  ::setenv("COSMATI_MAX_IMAGE", "4M", 1);
  EXPECT_EQ(decode_png(bytes_of(file), "black.png").width, 1000);
  ::setenv("COSMATI_MAX_IMAGE", "much", 1);
  EXPECT_TRUE(
      contains(error_of([&] { decode_png(bytes_of(file), "black.png"); }, ErrorCode::bad_request), "much"));
  ::unsetenv("COSMATI_MAX_IMAGE");
  EXPECT_EQ(decode_png(bytes_of(file), "black.png").width, 1000);
  // By default 9000 x 9000 is rejected: the header alone suffices.
  std::string large = black_png(8);
  large.replace(8, 25,
                png_chunk("IHDR" + big_endian(9000) + big_endian(9000) + std::string("\x8\x6\0\0\0", 5)));
  large.resize(400000, '\0');
  EXPECT_TRUE(contains(error_of([&] { decode_png(bytes_of(large), "large.png"); }), "COSMATI_MAX_IMAGE"));
}

}  // namespace
}  // namespace cosmati::io
