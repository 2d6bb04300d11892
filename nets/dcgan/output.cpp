// Chunks to files, and what is known of files that an earlier run left.
#include "nets/dcgan/output.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>

#include "nets/dcgan/picture.h"
#include "nets/dcgan/text.h"
#include "src/io/animated_png.h"
#include "src/io/file.h"
#include "src/io/npy.h"

namespace cosmati::dcgan {
namespace {

bool is_npy(std::string const& path) { return path.ends_with(".npy"); }

// A file, or nothing yet: no pipe or device, which cannot be continued.
bool is_ordinary(std::string const& path) {
  std::error_code ignored;
  return path.empty() || !std::filesystem::exists(path, ignored) ||
         std::filesystem::is_regular_file(path, ignored);
}

// Files are replaced where a link leads to.
std::string behind_link(std::string const& path) {
  std::error_code failed;
  if (!std::filesystem::is_symlink(path, failed) || !is_ordinary(path)) return path;
  auto const target = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : target.string();
}

unsigned long long size_of_file(std::string const& path) {
  std::error_code failed;
  auto const size = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<unsigned long long>(size);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// body(first, last) for shares of [0, count), each on a thread of its own.
template <class Body>
void in_parallel(int threads, Index count, Body const& body) {
  Index const parts = std::clamp<Index>(threads, 1, std::max<Index>(count, 1));
  std::vector<std::jthread> pool;
  for (Index part = 1; part < parts; ++part)
    pool.emplace_back([&, part] { body(count * part / parts, count * (part + 1) / parts); });
  body(0, count / parts);
}

}  // namespace

DataType image_type_for(OutputRequest const& request) {
  if (!request.output.empty() && !is_npy(request.output)) return DataType::f32;
  bool const picture = !request.image.empty() || !request.animation.empty();
  if (request.output.empty()) return picture ? DataType::u8 : DataType::f32;
  return picture && request.output_type == DataType::f16 ? DataType::f32 : request.output_type;
}

Output::Output(OutputRequest request, Index count, DataType image_type, std::string key, int threads)
    : request_(std::move(request)),
      count_(count),
      image_type_(image_type),
      key_(std::move(key)),
      threads_(threads) {
  for (std::string* path : {&request_.output, &request_.image, &request_.animation})
    *path = behind_link(*path);
  bool const output = !request_.output.empty(), picture = !picture_path().empty();
  unsigned long long output_bytes = 0, tile_bytes = 0;
  if ((output || picture) && is_ordinary(request_.output) && is_ordinary(request_.image) &&
      is_ordinary(request_.animation)) {
    progress_ = std::make_unique<io::ProgressFile>((output ? request_.output : picture_path()) + ".progress");
    std::istringstream line(progress_->read());
    std::string earlier;
    Index images = 0;
    if (line >> earlier >> images >> output_bytes >> tile_bytes && earlier == key_ &&
        (!output || size_of_file(request_.output + ".partial") >= output_bytes) &&
        (!picture || size_of_file(tiles_path() + ".partial") >= tile_bytes))
      images_ = images;
    else
      output_bytes = tile_bytes = 0;
  }
  if (output) output_ = std::make_unique<io::PartialFile>(request_.output, output_bytes);
  if (picture) tiles_ = std::make_unique<io::PartialFile>(tiles_path(), tile_bytes);
  if (!output || images_ > 0) return;
  std::string const begin =
      is_npy(request_.output)
          ? io::npy_prologue(
                describe(request_.output_type, Shape(count, image_size, image_size, image_channels)))
          : std::to_string(count) + "\n";
  output_->append(begin.data(), begin.size());
}

// Nothing is left of a run that made nothing.
Output::~Output() {
  if (finished_ || images_ > 0) return;
  if (output_) output_->discard();
  if (tiles_) tiles_->discard();
  if (progress_) progress_->remove();
}

void Output::take(Chunk const& chunk, void const* images) {
  if (output_) take_output(images, chunk.count);
  if (tiles_) take_tiles(images, chunk.count);
  images_ += chunk.count;
  if (progress_)
    progress_->write(key_ + " " + std::to_string(images_) + " " +
                     std::to_string(output_ ? output_->bytes() : 0) + " " +
                     std::to_string(tiles_ ? tiles_->bytes() : 0));
}

std::vector<std::byte> Output::converted(void const* images, Index count, DataType type) const {
  Index const elements = count * image_elements;
  std::vector<std::byte> result(static_cast<std::size_t>(elements * size_of(type)));
  auto const* const from = static_cast<float const*>(images);
  in_parallel(threads_, elements, [&](Index first, Index last) {
    if (type == DataType::u8)
      to_levels(from + first, last - first, reinterpret_cast<unsigned char*>(result.data()) + first);
    else
      for (Index i = first; i < last; ++i) store(type, result.data(), i, static_cast<double>(from[i]));
  });
  return result;
}

// body(), and how long it took.
template <class Body>
void Output::observed(Work work, Body const& body) const {
  if (!observe_) return body();
  double const begin = seconds_now();
  body();
  observe_(work, begin, seconds_now());
}

void Output::take_output(void const* images, Index count) {
  if (!is_npy(request_.output)) {
    std::vector<std::string> lines;
    observed(Work::conversion, [&] {
      lines = image_lines(static_cast<float const*>(images), count, image_elements, threads_);
    });
    observed(Work::writing, [&] {
      for (std::string const& piece : lines) output_->append(piece.data(), piece.size());
    });
  } else {
    append(*output_, images, count, request_.output_type);
  }
}

void Output::take_tiles(void const* images, Index count) { append(*tiles_, images, count, DataType::u8); }

// The images as numbers of `type`.
void Output::append(io::PartialFile& file, void const* images, Index count, DataType type) const {
  if (type == image_type_)
    return observed(Work::writing, [&] {
      file.append(images, static_cast<std::size_t>(count * image_elements * size_of(type)));
    });
  std::vector<std::byte> bytes;
  observed(Work::conversion, [&] { bytes = converted(images, count, type); });
  observed(Work::writing, [&] { file.append(bytes.data(), bytes.size()); });
}

void Output::write_pictures(unsigned char const* tiles) const {
  if (!request_.image.empty()) {
    io::Image const picture = picture_of_tiles(tiles, count_, request_.columns);
    request_.image.ends_with(".bmp") ? io::write_bmp(request_.image, picture)
                                     : io::write_png(request_.image, picture);
  }
  if (!request_.animation.empty())
    io::write_animated_png(request_.animation, count_, request_.frames_per_second,
                           [&](Index i) { return picture_of_tiles(tiles + i * image_elements, 1); });
}

void Output::finish() {
  if (tiles_) {
    io::MappedFile const tiles(tiles_->partial_path());
    write_pictures(reinterpret_cast<unsigned char const*>(tiles.bytes().data()));
  }
  if (output_) output_->finish();
  finished_ = true;
  if (tiles_) tiles_->discard();
  if (progress_) progress_->remove();
}

}  // namespace cosmati::dcgan
