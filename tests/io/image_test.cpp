// Pictures: PNG, BMP, gray, resizing.
#include "src/io/image/image.h"

#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include "src/io/file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;
using Pixels = std::vector<unsigned char>;

std::string big_endian(std::size_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string little_endian(std::size_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  return bytes;
}

std::string chunk(std::string const& type, std::string const& data) {
  std::string const body = type + data;
  auto const checksum = crc32(0, reinterpret_cast<Bytef const*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(data.size()) + body + big_endian(checksum);
}

std::string deflated(std::string const& text) {
  std::string out(compressBound(text.size()), '\0');
  uLongf size = out.size();
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<Bytef const*>(text.data()),
                     text.size()),
            Z_OK);
  out.resize(size);
  return out;
}

// `rows` holds the filter byte and the samples of each row, as in PNG.
std::string png(unsigned width, unsigned height, int depth, int color_type, std::string const& rows,
                std::string const& chunks_before_data = "", bool interlaced = false) {
  std::string const header = big_endian(width) + big_endian(height) +
                             std::string{static_cast<char>(depth), static_cast<char>(color_type), '\0', '\0',
                                         static_cast<char>(interlaced)};
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunks_before_data + chunk("IDAT", deflated(rows)) +
         chunk("IEND", "");
}

Image decoded(std::string const& file) { return decode_image(bytes_of(file), "x"); }
std::string refused(std::string const& file) {
  std::string const message = error_of([&] { decoded(file); });
  EXPECT_TRUE(contains(message, "x: ")) << message;
  return message;
}

void expect_pixels(Image const& image, int width, int height, int channels, Pixels const& pixels) {
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.height, height);
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.pixels, pixels);
}

std::string text(char const* bytes, std::size_t size) { return {bytes, size}; }

TEST(Png, ReadsEveryColorTypeAndDepth) {
  expect_pixels(decoded(png(2, 2, 8, 0, text("\0\x01\x02\0\x03\xff", 6))), 2, 2, 1, {1, 2, 3, 255});
  expect_pixels(decoded(png(3, 1, 1, 0, text("\0\xa0", 2))), 3, 1, 1, {255, 0, 255});
  expect_pixels(decoded(png(2, 1, 2, 0, text("\0\x60", 2))), 2, 1, 1, {85, 170});
  expect_pixels(decoded(png(2, 1, 4, 0, text("\0\x1f", 2))), 2, 1, 1, {17, 255});
  expect_pixels(decoded(png(2, 1, 16, 0, text("\0\x12\x34\xff\xff", 5))), 2, 1, 1, {18, 255});
  expect_pixels(decoded(png(1, 1, 8, 2, text("\0\x01\x02\x03", 4))), 1, 1, 3, {1, 2, 3});
  expect_pixels(decoded(png(1, 1, 16, 2, text("\0\x01\x00\x02\x00\x03\x00", 7))), 1, 1, 3, {1, 2, 3});
  std::string const palette = chunk("PLTE", "abcxyz");
  expect_pixels(decoded(png(2, 1, 1, 3, text("\0\x40", 2), palette)), 2, 1, 3,
                {'a', 'b', 'c', 'x', 'y', 'z'});
  expect_pixels(decoded(png(2, 1, 8, 3, text("\0\x01\0", 3), palette)), 2, 1, 3,
                {'x', 'y', 'z', 'a', 'b', 'c'});
}

TEST(Png, LaysTransparencyOverThePage) {
  std::string const gray = png(3, 1, 8, 4, text("\0\xc8\xff\xc8\x80\xc8\0", 7)),
                    color = png(1, 1, 8, 6, text("\0\xff\x80\x00\x80", 5)),
                    palette = png(2, 1, 8, 3, text("\0\0\x01", 3),
                                  chunk("PLTE", "abcxyz") + chunk("tRNS", text("\0", 1))),
                    key = png(2, 1, 8, 0, text("\0\x07\x08", 3), chunk("tRNS", text("\0\x07", 2)));
  expect_pixels(decoded(gray), 3, 1, 1, {200, 227, 255});
  expect_pixels(decoded(color), 1, 1, 3, {255, 191, 127});
  expect_pixels(decoded(palette), 2, 1, 3, {255, 255, 255, 'x', 'y', 'z'});
  expect_pixels(decoded(key), 2, 1, 1, {255, 8});
  expect_pixels(decode_image(bytes_of(gray), "x", 0), 3, 1, 1, {200, 100, 0});
  expect_pixels(decode_image(bytes_of(color), "x", 0), 1, 1, 3, {128, 64, 0});
  expect_pixels(decode_image(bytes_of(palette), "x", 9), 2, 1, 3, {9, 9, 9, 'x', 'y', 'z'});
}

TEST(Png, ReadsInterlacedPictures) {
  // 2 x 2 by Adam7: pass 1 has (0, 0), pass 6 (1, 0), pass 7 the second row.
  expect_pixels(decoded(png(2, 2, 8, 0, text("\0\x01\0\x02\0\x03\x04", 7), "", true)), 2, 2, 1, {1, 2, 3, 4});
}

TEST(Png, SkipsChunksThatAreBombs) {
  std::string const comment = chunk("zTXt", text("k\0\0", 3) + deflated(std::string(20'000'000, 'x')));
  std::string const profile = chunk("iCCP", text("p\0\0", 3) + deflated(std::string(1'000'000, 'x')));
  expect_pixels(decoded(png(1, 1, 8, 0, text("\0\x07", 2), profile + comment)), 1, 1, 1, {7});
}

TEST(Png, RefusesSizesThatLie) {
  EXPECT_TRUE(contains(refused(png(16384, 16384, 8, 2, "")), "claims 16384 x 16384 pixels"));
  EXPECT_TRUE(contains(refused(png(100000, 1, 8, 0, "")), "not a valid PNG"));
  EXPECT_TRUE(contains(refused(png(0, 1, 8, 0, "")), "not a valid PNG"));
  EXPECT_TRUE(contains(refused(png(2, 2, 8, 0, text("\0\x01\x02", 3))), "not a valid PNG"));
  EXPECT_TRUE(contains(refused("\x89PNG and so on"), "not a valid PNG"));
  EXPECT_TRUE(contains(refused("GIF89a"), "neither a PNG nor a BMP"));
}

TEST(Png, CutOrAlteredFilesNeverCrash) {
  auto const parse = [](std::span<std::byte const> file) { decode_image(file, "x"); };
  for (std::string const& file : {png(2, 2, 8, 4, text("\0\x01\x02\x03\x04\0\x05\x06\x07\x08", 10)),
                                  png(2, 2, 1, 3, text("\0\x40\0\x80", 4), chunk("PLTE", "abcxyz"))}) {
    expect_refused_when_cut(file, parse);
    expect_no_crash_when_altered(file, parse);
  }
}

Image pattern(int width, int height, int channels) {
  Image image = make_image(width, height, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<unsigned char>(37 * i + 5);
  return image;
}

TEST(Image, WritesPngThatItReads) {
  TemporaryFolder const folder;
  for (int const channels : {1, 3}) {
    Image const image = pattern(13, 7, channels);
    write_png(folder / "x.png", image);
    expect_pixels(read_image(folder / "x.png"), 13, 7, channels, image.pixels);
  }
  EXPECT_TRUE(contains(error_of([&] { read_image(folder / "y.png"); }), "y.png: cannot be opened"));
}

TEST(Image, WritesBmpThatItReads) {
  TemporaryFolder const folder;
  for (int const width : {1, 2, 3, 4, 5}) {
    Image const image = pattern(width, 3, 3);
    write_bmp(folder / "x.bmp", image);
    expect_pixels(read_image(folder / "x.bmp"), width, 3, 3, image.pixels);
  }
}

TEST(Bmp, HasTheHeaderOfTheReport) {
  Image image = make_image(1, 2, 3);
  image.pixels = {1, 2, 3, 4, 5, 6};
  std::string expected = "BM" + little_endian(62, 4) + little_endian(0, 4) + little_endian(54, 4);
  expected += little_endian(40, 4) + little_endian(1, 4) + little_endian(2, 4) + little_endian(1, 2);
  expected += little_endian(24, 2) + little_endian(0, 4) + little_endian(8, 4) + std::string(16, '\0');
  expected += text("\x06\x05\x04\0\x03\x02\x01\0", 8);
  EXPECT_EQ(encode_bmp(image), expected);
}

TEST(Bmp, GrayIsWrittenAsColor) {
  Image gray = make_image(1, 1, 1);
  gray.pixels = {9};
  expect_pixels(decoded(encode_bmp(gray)), 1, 1, 3, {9, 9, 9});
}

std::string bmp(long long width, long long height, unsigned bits, std::string const& palette,
                std::string const& rows, unsigned colors = 0, unsigned compression = 0) {
  std::size_t const data_at = 54 + palette.size();
  return "BM" + little_endian(data_at + rows.size(), 4) + little_endian(0, 4) + little_endian(data_at, 4) +
         little_endian(40, 4) + little_endian(static_cast<std::size_t>(width), 4) +
         little_endian(static_cast<std::size_t>(height), 4) + little_endian(1, 2) + little_endian(bits, 2) +
         little_endian(compression, 4) + little_endian(rows.size(), 4) + little_endian(0, 8) +
         little_endian(colors, 4) + little_endian(0, 4) + palette + rows;
}

std::string const two_colors = "abc-xyz-";
std::string const two_grays = text("\0\0\0\0\x40\x40\x40\0", 8);

TEST(Bmp, ReadsPalettes) {
  expect_pixels(decoded(bmp(2, 1, 1, two_colors, text("\x40\0\0\0", 4))), 2, 1, 3,
                {'c', 'b', 'a', 'z', 'y', 'x'});
  expect_pixels(decoded(bmp(2, 1, 1, two_grays, text("\x40\0\0\0", 4))), 2, 1, 1, {0, 64});
  expect_pixels(decoded(bmp(3, 1, 4, two_grays, text("\x10\x10\0\0", 4), 2)), 3, 1, 1, {64, 0, 64});
  expect_pixels(decoded(bmp(2, 2, 8, two_grays, text("\1\0\0\0\0\1\0\0", 8), 2)), 2, 2, 1, {0, 64, 64, 0});
  EXPECT_TRUE(
      contains(refused(bmp(1, 1, 8, two_grays, text("\2\0\0\0", 4), 2)), "color 2 of a palette of 2"));
  EXPECT_TRUE(contains(refused(bmp(1, 1, 8, two_grays, text("\2\0\0\0", 4))), "palette of 256"));
  EXPECT_TRUE(
      contains(refused(bmp(1, 1, 1, two_grays, text("\0\0\0\0", 4), 0xffffffff)), "palette of 4294967295"));
}

TEST(Bmp, ReadsEitherOrderOfRowsAndFourBytes) {
  expect_pixels(decoded(bmp(1, -2, 24, "", text("\1\2\3\0\4\5\6\0", 8))), 1, 2, 3, {3, 2, 1, 6, 5, 4});
  expect_pixels(decoded(bmp(1, 2, 24, "", text("\1\2\3\0\4\5\6\0", 8))), 1, 2, 3, {6, 5, 4, 3, 2, 1});
  expect_pixels(decoded(bmp(1, 1, 32, "", text("\1\2\3\0", 4))), 1, 1, 3, {3, 2, 1});
  std::string const masks = text("\0\0\xff\0\0\xff\0\0\xff\0\0\0", 12);
  expect_pixels(decoded(bmp(1, 1, 32, masks, text("\1\2\3\0", 4), 0, 3)), 1, 1, 3, {3, 2, 1});
  std::string const other = text("\xff\0\0\0\0\xff\0\0\0\0\xff\0", 12);
  EXPECT_TRUE(contains(refused(bmp(1, 1, 32, other, text("\1\2\3\0", 4), 0, 3)), "masks"));
}

TEST(Bmp, RefusesSizesThatLie) {
  std::string const row = text("\1\2\3\0", 4);
  EXPECT_TRUE(contains(refused(bmp(16384, 16384, 24, "", row)), "805306368 bytes starting at byte 54"));
  EXPECT_TRUE(contains(refused(bmp(1, 2, 24, "", row)), "8 bytes starting at byte 54, but the file has 58"));
  EXPECT_TRUE(contains(refused(bmp(16385, 1, 24, "", row)), "claims 16385 x 1"));
  EXPECT_TRUE(contains(refused(bmp(0, 1, 24, "", row)), "claims 0 x 1"));
  EXPECT_TRUE(contains(refused(bmp(-1, 1, 24, "", row)), "claims -1 x 1"));
  EXPECT_TRUE(contains(refused(bmp(1, -2147483648LL, 24, "", row)), "claims 1 x 2147483648"));
  EXPECT_TRUE(contains(refused(bmp(1, 1, 16, "", row)), "16 bits per pixel"));
  EXPECT_TRUE(contains(refused(bmp(1, 1, 8, two_grays, row, 2, 1)), "compression 1"));
  EXPECT_TRUE(contains(refused("BM"), "ends after 2 bytes"));
}

TEST(Bmp, CutOrAlteredFilesNeverCrash) {
  auto const parse = [](std::span<std::byte const> file) { decode_image(file, "x"); };
  for (std::string const& file :
       {bmp(3, 2, 4, two_grays, text("\x10\x10\0\0\x10\x10\0\0", 8), 2), encode_bmp(pattern(2, 2, 3))}) {
    expect_refused_when_cut(file, parse);
    expect_no_crash_when_altered(file, parse);
  }
}

TEST(Image, GrayIsLuminance) {
  Image image = make_image(4, 1, 3);
  image.pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
  expect_pixels(to_gray(image), 4, 1, 1, {76, 150, 29, 255});
}

TEST(Image, AreaMeansWhenSmaller) {
  Image image = make_image(4, 2, 1);
  image.pixels = {0, 100, 8, 8, 100, 200, 8, 8};
  expect_pixels(resize_area(image, 2, 1), 2, 1, 1, {100, 8});
  image = make_image(3, 1, 1);
  image.pixels = {0, 90, 30};
  expect_pixels(resize_area(image, 2, 1), 2, 1, 1, {30, 50});  // (0 + 90/2) / 1.5, (90/2 + 30) / 1.5
}

TEST(Image, LinearWhenLarger) {
  Image image = make_image(2, 1, 1);
  image.pixels = {0, 100};
  expect_pixels(resize_bilinear(image, 4, 1), 4, 1, 1, {0, 25, 75, 100});
  expect_pixels(resize_bilinear(image, 4, 2), 4, 2, 1, {0, 25, 75, 100, 0, 25, 75, 100});
}

TEST(Image, ResizingToTheSameSizeChangesNothing) {
  for (int const channels : {1, 3}) {
    Image const image = pattern(17, 5, channels);
    EXPECT_EQ(resize_area(image, 17, 5).pixels, image.pixels);
    EXPECT_EQ(resize_bilinear(image, 17, 5).pixels, image.pixels);
  }
}

TEST(Image, ResizingKeepsAConstant) {
  Image image = make_image(17, 29, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), static_cast<unsigned char>(201));
  for (int const size : {1, 3, 28, 100}) {
    Image const area = resize_area(image, size, size + 1);
    Image const linear = resize_bilinear(image, size, size + 1);
    EXPECT_EQ(area.pixels, Pixels(area.pixels.size(), 201));
    EXPECT_EQ(linear.pixels, Pixels(linear.pixels.size(), 201));
  }
}

TEST(Image, RefusesRequestsThatMakeNoPicture) {
  error_of([] { make_image(0, 1, 1); }, ErrorCode::bad_request);
  error_of([] { make_image(1, 1, 2); }, ErrorCode::bad_request);
  error_of([] { encode_png(Image{2, 2, 3, {1, 2, 3}}); }, ErrorCode::bad_request);
  error_of([] { encode_bmp(Image{2, 2, 3, {1, 2, 3}}); }, ErrorCode::bad_request);
  error_of([] { resize_area(make_image(1, 1, 1), 0, 5); }, ErrorCode::bad_request);
}

}  // namespace
}  // namespace cosmati::io
