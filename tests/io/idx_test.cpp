// IDX files, plain and compressed.
#include "src/io/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "src/io/file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;

std::string idx(int type, std::vector<unsigned> const& extents, std::string const& data) {
  std::string file = {'\0', '\0', static_cast<char>(type), static_cast<char>(extents.size())};
  for (unsigned const extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift & 0xff);
  return file + data;
}

std::string gzip(std::string const& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Tensor parsed(std::string const& file) { return parse_idx(bytes_of(file), "x.idx"); }

std::string refused(std::string const& file) {
  std::string const message = error_of([&] { parsed(file); });
  EXPECT_TRUE(contains(message, "x.idx: ")) << message;
  return message;
}

TEST(Idx, ReadsBytesPlainAndCompressed) {
  std::string const file = idx(0x08, {2, 3}, std::string("\x00\x01\x02\x03\x04\xff", 6));
  for (std::string const& form : {file, gzip(file), gzip(file.substr(0, 9)) + gzip(file.substr(9)),
                                  gzip(file) + std::string(7, '\0')}) {
    Tensor const tensor = parsed(form);
    EXPECT_EQ(tensor.type(), DataType::u8);
    EXPECT_EQ(tensor.shape(), Shape(2, 3));
    EXPECT_EQ(tensor.get(4), 4);
    EXPECT_EQ(tensor.get(5), 255);
  }
}

TEST(Idx, ReadsEveryType) {
  auto const first = [](int type, std::string const& data) {
    Tensor const tensor = parsed(idx(type, {1}, data));
    return std::pair(tensor.type(), tensor.get(0));
  };
  EXPECT_EQ(first(0x09, "\xfe"), std::pair(DataType::s8, -2.0));
  EXPECT_EQ(first(0x0b, "\xff\xfe"), std::pair(DataType::s32, -2.0));
  EXPECT_EQ(first(0x0c, "\x01\x02\x03\x04"), std::pair(DataType::s32, 16909060.0));
  EXPECT_EQ(first(0x0d, std::string("\xbf\xc0\x00\x00", 4)), std::pair(DataType::f32, -1.5));
  EXPECT_EQ(first(0x0e, std::string("\x3f\xf8\x00\x00\x00\x00\x00\x00", 8)), std::pair(DataType::f64, 1.5));
}

TEST(Idx, ReadsFromTheDisk) {
  TemporaryFolder const folder;
  std::string data(300'000, 'x');
  data.back() = 'y';
  write_atomically(folder / "labels", gzip(idx(0x08, {300'000}, data)));
  Tensor const tensor = read_idx(folder / "labels");
  EXPECT_EQ(tensor.get(299'998), 'x');
  EXPECT_EQ(tensor.get(299'999), 'y');
  EXPECT_TRUE(contains(error_of([&] { read_idx(folder / "none"); }), "none: cannot be opened"));
}

TEST(Idx, RefusesWhatIsNotIdx) {
  EXPECT_TRUE(contains(refused("PK\x03\x04"), "not an IDX file"));
  EXPECT_TRUE(contains(refused(""), "ends within its IDX header"));
  EXPECT_TRUE(contains(refused(idx(0x0a, {1}, "x")), "0x0a"));
  EXPECT_TRUE(contains(refused(idx(0x08, {}, "x")), "0 dimensions"));
  EXPECT_TRUE(contains(refused(idx(0x08, {1, 1, 1, 1, 1, 1, 1}, "x")), "7 dimensions"));
  EXPECT_TRUE(contains(refused(gzip("hello, world")), "not an IDX file"));
}

TEST(Idx, RefusesSizesThatLie) {
  for (bool const compressed : {false, true}) {
    auto const form = [&](std::string const& file) { return compressed ? gzip(file) : file; };
    EXPECT_TRUE(contains(refused(form(idx(0x08, {3}, "ab"))), "3 bytes of data, but only 2 follow"));
    EXPECT_TRUE(contains(refused(form(idx(0x08, {3}, "abcd"))), "but more follow"));
    EXPECT_TRUE(contains(refused(form(idx(0x0e, {0xffffffff, 0xffffff}, "ab"))), "but only 2 follow"));
    EXPECT_TRUE(contains(refused(form(idx(0x0e, {0xffffffff, 0xffffffff}, "ab"))), "2^62"));
    EXPECT_TRUE(contains(refused(form(idx(0x08, {0, 0xffffffff, 0xffffffff}, ""))), "2^62"));
    EXPECT_EQ(parsed(form(idx(0x08, {0, 28, 28}, ""))).size(), 0);
  }
}

TEST(Idx, StopsABombAtThePromisedSize) {
  std::string const bomb = gzip(idx(0x08, {4}, std::string(50'000'000, '\0')));
  EXPECT_LT(bomb.size(), 60'000u);
  EXPECT_TRUE(contains(refused(bomb), "4 bytes of data, but more follow"));
}

TEST(Idx, RefusesDamagedGzip) {
  std::string file = gzip(idx(0x08, {4}, "abcd"));
  std::string wrong_checksum = file;
  wrong_checksum[file.size() - 8] ^= 1;
  EXPECT_TRUE(contains(refused(wrong_checksum), "incorrect data check"));
  std::string wrong_length = file;
  wrong_length[file.size() - 1] ^= 1;
  EXPECT_TRUE(contains(refused(wrong_length), "incorrect length check"));
  EXPECT_TRUE(contains(refused(file.substr(0, file.size() - 3)), "is truncated"));
  EXPECT_TRUE(contains(refused(file + "rest"), "4 bytes after its compressed data that are not gzip"));
}

TEST(Idx, CutOrAlteredFilesNeverCrash) {
  auto const parse = [](std::span<std::byte const> file) { parse_idx(file, "x.idx"); };
  std::string const file = idx(0x0b, {2, 1, 3}, "abcdefghijkl");
  for (std::string const& form : {file, gzip(file)}) {
    expect_refused_when_cut(form, parse);
    expect_no_crash_when_altered(form, parse);
  }
}

}  // namespace
}  // namespace cosmati::io
