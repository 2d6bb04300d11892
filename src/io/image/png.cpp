// Reads and writes PNG files with libpng. libpng reports errors with longjmp, so functions between setjmp and
// a libpng call must not own resources: everything that needs freeing belongs to Reader or Writer, whose
// destructors run in the caller.
#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/io/bad_file.h"
#include "src/io/image/image.h"
#include "src/io/image/image_checks.h"
#include "src/io/size_text.h"

namespace cosmati::io {
namespace {

struct Message {
  char text[128] = "";
};

[[noreturn]] void keep_message_and_leave(png_structp png, png_const_charp text) {
  auto* const message = static_cast<Message*>(png_get_error_ptr(png));
  std::strncpy(message->text, text, sizeof message->text - 1);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

struct Reader {
  std::span<std::byte const> input;
  Message message;
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit Reader(std::span<std::byte const> file)
      : input(file),
        png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &message, keep_message_and_leave, ignore_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(Reader const&) = delete;
  Reader& operator=(Reader const&) = delete;
};

void take_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* const reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->input.size()) png_error(png, "it is truncated");
  std::memcpy(to, reader->input.data(), count);
  reader->input = reader->input.subspan(count);
}

// Reads everything before the pixels; returns false if libpng reports an error. Ancillary chunks, which may
// decompress to megabytes, are skipped, except tRNS, which holds transparency.
bool read_info(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_set_read_fn(reader.png, &reader, take_bytes);
  png_set_user_limits(reader.png, largest_image_extent, largest_image_extent);
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(reader.png, reader.info);
  return true;
}

// Configures decoding to 8 bits per sample, without palette.
bool set_transformations(Reader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_set_expand(reader.png);
  png_set_scale_16(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return true;
}

bool read_rows(Reader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

[[noreturn]] void refuse(Reader const& reader, std::string const& name) {
  bad_file(name, fmt::format("is not a valid PNG file: {}", reader.message.text));
}

constexpr long long default_max_bytes = 256LL << 20;  // if COSMATI_MAX_IMAGE is not set
constexpr std::size_t max_channels = 4;

// Deflate expands by a factor of at most 1032: a header that claims more data than that is invalid.
void check_promise(Reader const& reader, std::size_t file_bytes, std::string const& name) {
  std::size_t const width = png_get_image_width(reader.png, reader.info);
  std::size_t const height = png_get_image_height(reader.png, reader.info);
  check_image_extents(static_cast<long long>(width), static_cast<long long>(height), name);
  std::size_t const bits =
      std::size_t{png_get_bit_depth(reader.png, reader.info)} * png_get_channels(reader.png, reader.info);
  if (width * height * bits / 8 / 1032 > file_bytes)
    bad_file(name, fmt::format("claims {} x {} pixels of {} bits, more than its {} bytes can hold", width,
                               height, bits, file_bytes));
  auto const max = static_cast<std::size_t>(size_from_environment("COSMATI_MAX_IMAGE", default_max_bytes));
  if (std::size_t const memory = width * height * max_channels; memory > max)
    bad_file(name, fmt::format("has {} x {} pixels, up to {} bytes; COSMATI_MAX_IMAGE allows {}", width,
                               height, memory, max));
}

// Blends the image over `page`. `samples` has 1 to 4 channels; with an even number, the last is alpha.
Image without_alpha(Image const& samples, unsigned char page) {
  if (samples.channels % 2 != 0) return samples;
  int const channels = samples.channels - 1;
  Image image = make_image(samples.width, samples.height, channels);
  unsigned char const* from = samples.pixels.data();
  for (unsigned char* to = image.pixels.data(); to != image.pixels.data() + image.pixels.size();) {
    for (int c = 0; c < channels; ++c) *to++ = over_page(from[c], from[channels], page);
    from += samples.channels;
  }
  return image;
}

struct Writer {
  Message message;
  std::string output;
  png_structp png = nullptr;
  png_infop info = nullptr;

  Writer()
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, keep_message_and_leave,
                                    ignore_warning)) {
    if (png != nullptr) info = png_create_info_struct(png);
  }
  ~Writer() { png_destroy_write_struct(&png, &info); }
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;
};

void append_bytes(png_structp png, png_bytep bytes, std::size_t count) {
  bool appended = true;
  try {
    static_cast<Writer*>(png_get_io_ptr(png))->output.append(reinterpret_cast<char const*>(bytes), count);
  } catch (std::bad_alloc const&) {
    appended = false;  // an exception must not pass through libpng, nor a longjmp out of a handler
  }
  if (!appended) png_error(png, "no memory");
}

bool write_all(Writer& writer, Image const& image, png_bytepp rows) {
  if (setjmp(png_jmpbuf(writer.png))) return false;
  png_set_write_fn(writer.png, &writer, append_bytes, nullptr);
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8,
               image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer.png, writer.info);
  png_write_image(writer.png, rows);
  png_write_end(writer.png, nullptr);
  return true;
}

std::vector<png_bytep> row_pointers(Image& image) {
  std::vector<png_bytep> rows;
  for (int y = 0; y < image.height; ++y) rows.push_back(image.pixels.data() + image.offset(0, y));
  return rows;
}

[[noreturn]] void out_of_memory() {
  throw Error(ErrorCode::out_of_memory, "out of memory in the PNG library");
}

}  // namespace

Image decode_png(std::span<std::byte const> file, std::string const& name, unsigned char page) {
  Reader reader(file);
  if (reader.info == nullptr) out_of_memory();
  if (!read_info(reader)) refuse(reader, name);
  check_promise(reader, file.size(), name);
  if (!set_transformations(reader)) refuse(reader, name);

  Image samples{static_cast<int>(png_get_image_width(reader.png, reader.info)),
                static_cast<int>(png_get_image_height(reader.png, reader.info)),
                png_get_channels(reader.png, reader.info),
                {}};
  samples.pixels.resize(samples.offset(0, samples.height));
  std::vector<png_bytep> rows = row_pointers(samples);
  if (!read_rows(reader, rows.data())) refuse(reader, name);
  return without_alpha(samples, page);
}

std::string encode_png(Image const& image) {
  check_image(image);
  Image pixels = image;  // a copy, because libpng takes non-const rows
  std::vector<png_bytep> rows = row_pointers(pixels);
  Writer writer;
  if (writer.info == nullptr) out_of_memory();
  if (!write_all(writer, image, rows.data()))
    throw Error(ErrorCode::system, fmt::format("cannot encode a PNG of {} x {} pixels: {}", image.width,
                                               image.height, writer.message.text));
  return std::move(writer.output);
}

}  // namespace cosmati::io
