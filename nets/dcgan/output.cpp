// Writes chunks to their positions in the files, and reads how far an earlier run got.
#include "nets/dcgan/output.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <random>
#include <sstream>
#include <utility>

#include "nets/dcgan/picture.h"
#include "nets/dcgan/text.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/io/file.h"
#include "src/io/image/animated_png.h"
#include "src/io/npy.h"

namespace cosmati::dcgan {
namespace {

// Whether the path is a regular file or does not exist; pipes and devices cannot be continued.
bool is_ordinary(std::string const& path) {
  std::error_code ignored;
  return path.empty() || !std::filesystem::exists(path, ignored) ||
         std::filesystem::is_regular_file(path, ignored);
}

// The target if the path is a symbolic link, so that the link itself is kept.
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

unsigned long long unsigned_of(Index value) { return static_cast<unsigned long long>(value); }

constexpr Index piece_bytes = 1 << 18;  // bytes of an array that one thread writes at a time
constexpr std::size_t seal_bytes = 32;
constexpr Index row_bytes = image_size * image_channels;  // bytes per image row with 8-bit channels

}  // namespace

// The work of one thread at a time: `count` images of a part, beginning with image `first` of the part.
struct Output::Unit {
  enum class Kind { text, array, bitmap, tiles } kind;
  Index first, count;
};

bool is_array(std::string const& output) { return output.ends_with(".npy") || output.ends_with(".raw"); }

DataType image_type_for(OutputRequest const& request) {
  if (!request.output.empty() && !is_array(request.output)) return DataType::f32;
  bool const picture = !request.image.empty() || !request.animation.empty();
  if (request.output.empty()) return picture ? DataType::u8 : DataType::f32;
  return picture && request.output_type == DataType::f16 ? DataType::f32 : request.output_type;
}

Output::Output(OutputRequest request, Index count, DataType image_type, int threads)
    : request_(std::move(request)), count_(count), image_type_(image_type), threads_(threads) {
  for (std::string* path : {&request_.output, &request_.image, &request_.animation})
    *path = behind_link(*path);
  head_ = head();
}

// A bitmap stores its rows from bottom to top, so the images of the first row of tiles come last.
Index Output::bitmap_end(Index images) const {
  return static_cast<Index>(io::bmp_prologue(1, 1).size()) + columns() * rows() * image_elements -
         std::max<Index>(columns() - images, 0) * row_bytes;
}

Output::Output(OutputRequest request, Index count, DataType image_type, std::string key, int threads)
    : Output(std::move(request), count, image_type, threads) {
  key_ = std::move(key);
  bool const output = !request_.output.empty();
  if ((output || !picture_path().empty()) && is_ordinary(request_.output) && is_ordinary(request_.image) &&
      is_ordinary(request_.animation)) {
    progress_ = std::make_unique<io::ProgressFile>((output ? request_.output : picture_path()) + ".progress");
    std::istringstream line(progress_->read());
    std::string earlier;
    Dealer::Written before;
    auto const reaches = [](std::string const& path, Index bytes) {
      return size_of_file(path + ".partial") >= unsigned_of(bytes);
    };
    if (line >> earlier >> before.images >> before.text_at && earlier == key_ && before.images > 0 &&
        before.images <= count_ && before.text_at >= 0 &&
        (!output || reaches(request_.output, is_array(request_.output) ? before.images * image_elements *
                                                                             size_of(request_.output_type)
                                                                       : before.text_at)) &&
        (!has_bitmap() || reaches(request_.image, bitmap_end(before.images))) &&
        (!has_tiles() || reaches(tiles_path(), before.images * image_elements)))
      written_ = before;
  }
  if (written_.images == 0) written_.text_at = output ? static_cast<Index>(head_.size()) : 0;
  auto const made = [&](std::string const& path) {  // keeps what an earlier run left if any of it is valid
    return std::make_unique<io::PartialFile>(path, written_.images > 0 ? 1 : 0);
  };
  if (output) output_ = made(request_.output);
  if (has_bitmap()) bitmap_ = made(request_.image);
  if (has_tiles()) tiles_ = made(tiles_path());
  if (in_order()) output_->write(0, head_.data(), head_.size());
}

std::unique_ptr<Output> Output::join(OutputRequest request, Index count, DataType image_type, int threads,
                                     std::string const& seal) {
  if (seal.empty()) return nullptr;
  std::unique_ptr<Output> result(new Output(std::move(request), count, image_type, threads));
  Output& output = *result;
  output.joined_ = true;
  auto const joined = [](std::unique_ptr<io::PartialFile>& file, std::string const& path) {
    file = io::PartialFile::join(path);
    return file != nullptr;
  };
  if ((!output.request_.output.empty() && !joined(output.output_, output.request_.output)) ||
      (output.has_bitmap() && !joined(output.bitmap_, output.request_.image)) ||
      (output.has_tiles() && !joined(output.tiles_, output.tiles_path())))
    return nullptr;
  std::istringstream words(seal);
  std::string mark;
  words >> output.written_.images >> output.written_.text_at >> mark;
  for (auto const& [file, at] : output.sealed_places())
    if (file->read(at, mark.size()) != mark) return nullptr;
  return result;
}

// Removes the files if no image was written.
Output::~Output() {
  if (!finished_ && !joined_ && written_.images == 0) discard();
}

void Output::discard() {
  for (auto const* file : {&output_, &bitmap_, &tiles_})
    if (*file) (*file)->discard();
  if (progress_) progress_->remove();
  finished_ = true;
}

bool Output::has_bitmap() const { return request_.image.ends_with(".bmp") && is_ordinary(request_.image); }

bool Output::has_tiles() const {
  return !request_.animation.empty() || (!request_.image.empty() && !has_bitmap());
}

std::string Output::head() const {
  if (request_.output.ends_with(".npy"))
    return io::npy_prologue(
        describe(request_.output_type, Shape(count_, image_size, image_size, image_channels)));
  return request_.output.empty() || is_array(request_.output) ? "" : std::to_string(count_) + "\n";
}

Index Output::columns() const { return columns_of_picture(count_, request_.columns); }
Index Output::rows() const {
  return request_.columns > 0 ? (count_ + request_.columns - 1) / request_.columns : columns();
}

// Positions of bytes that a later chunk or header will overwrite.
std::vector<std::pair<io::PartialFile*, unsigned long long>> Output::sealed_places() const {
  std::vector<std::pair<io::PartialFile*, unsigned long long>> places;
  if (output_)
    places.emplace_back(output_.get(),
                        unsigned_of(is_array(request_.output)
                                        ? static_cast<Index>(head_.size()) +
                                              written_.images * image_elements * size_of(request_.output_type)
                                        : written_.text_at));
  if (bitmap_) places.emplace_back(bitmap_.get(), 0);
  if (tiles_) places.emplace_back(tiles_.get(), unsigned_of(written_.images * image_elements));
  return places;
}

std::string Output::seal() {
  if (in_order()) return {};  // whatever is written to a pipe stays
  std::random_device random;
  std::string mark;
  while (mark.size() < seal_bytes) mark += static_cast<char>('a' + random() % 26);
  for (auto const& [file, at] : sealed_places()) {
    file->write(at, mark.data(), mark.size());
    file->flush();
  }
  return std::to_string(written_.images) + " " + std::to_string(written_.text_at) + " " + mark;
}

Part Output::part(Chunk const& chunk, Images images) const {
  Part part;
  part.chunk = chunk;
  part.images = std::move(images);
  if (!text()) return part;
  auto const* const numbers = static_cast<float const*>(part.images.get());
  part.text_ends.resize(static_cast<std::size_t>(chunk.count));
  // A few threads saturate the memory bandwidth; the others are writing.
  cpu::parallel_parts(std::min(threads_, std::max(4, threads_ / 4)), [&](int one, int of) {
    auto const share = cpu::share(chunk.count, one, of);
    for (Index i = share.first; i < share.last; ++i)
      part.text_ends[static_cast<std::size_t>(i)] =
          text_bytes(numbers + i * image_elements, image_elements) + 1;
  });
  for (Index& bytes : part.text_ends) bytes = part.text_bytes += bytes;
  return part;
}

std::vector<Output::Unit> Output::units_of(Part const& part) const {
  std::vector<Unit> units;
  Index const count = part.chunk.count;
  auto const in_pieces = [&](Unit::Kind kind, Index images) {
    for (Index first = 0; first < count; first += images)
      units.push_back({kind, first, std::min(images, count - first)});
  };
  if (bitmap_)  // images that share a row of tiles
    for (Index first = 0; first < count;) {
      Index const here = std::min(count - first, columns() - (part.chunk.first + first) % columns());
      units.push_back({Unit::Kind::bitmap, first, here});
      first += here;
    }
  if (output_ && is_array(request_.output))
    in_pieces(Unit::Kind::array,
              std::max<Index>(1, piece_bytes / (image_elements * size_of(request_.output_type))));
  if (tiles_) in_pieces(Unit::Kind::tiles, piece_bytes / image_elements);
  if (text()) in_pieces(Unit::Kind::text, 1);
  return units;
}

void Output::write(Part const& part) {
  auto const units = units_of(part);
  std::atomic<std::size_t> next{0};
  int const parts = static_cast<int>(std::min<std::size_t>(units.size(), static_cast<std::size_t>(threads_)));
  cpu::parallel_parts(in_order() ? 1 : parts, [&](int, int) {
    thread_local std::vector<char> buffer;
    for (std::size_t i = 0; (i = next++) < units.size();) write_unit(part, units[i], buffer);
  });
}

void Output::write_unit(Part const& part, Unit const& unit, std::vector<char>& buffer) {
  switch (unit.kind) {
    case Unit::Kind::text: return write_text(part, unit.first, buffer);
    case Unit::Kind::bitmap: return write_bitmap(part, unit, buffer);
    case Unit::Kind::tiles: return write_array(*tiles_, 0, DataType::u8, part, unit, buffer);
    case Unit::Kind::array:
      return write_array(*output_, head_.size(), request_.output_type, part, unit, buffer);
  }
}

void Output::write_text(Part const& part, Index image, std::vector<char>& buffer) {
  auto const i = static_cast<std::size_t>(image);
  Index const begin = image == 0 ? 0 : part.text_ends[i - 1];
  auto const bytes = static_cast<std::size_t>(part.text_ends[i] - begin);
  if (buffer.size() < bytes + text_slack) buffer.resize(bytes + text_slack);
  auto const* const numbers = static_cast<float const*>(part.images.get()) + image * image_elements;
  *to_text(numbers, image_elements, buffer.data()) = '\n';
  output_->write(unsigned_of(part.text_at + begin), buffer.data(), bytes);
}

// Writes the images as elements of `type`.
void Output::write_array(io::PartialFile& file, unsigned long long head_bytes, DataType type,
                         Part const& part, Unit const& unit, std::vector<char>& buffer) {
  Index const image_bytes = image_elements * size_of(type), elements = unit.count * image_elements;
  auto const bytes = static_cast<std::size_t>(unit.count * image_bytes);
  auto const at = head_bytes + unsigned_of((part.chunk.first + unit.first) * image_bytes);
  if (type == image_type_)
    return file.write(at, static_cast<char const*>(part.images.get()) + unit.first * image_bytes, bytes);
  if (buffer.size() < bytes) buffer.resize(bytes);
  auto const* const from = static_cast<float const*>(part.images.get()) + unit.first * image_elements;
  if (type == DataType::u8)
    to_levels(from, elements, reinterpret_cast<unsigned char*>(buffer.data()));
  else
    for (Index i = 0; i < elements; ++i) store(type, buffer.data(), i, static_cast<double>(from[i]));
  file.write(at, buffer.data(), bytes);
}

// Writes adjacent images, bottom row of pixels first.
void Output::write_bitmap(Part const& part, Unit const& unit, std::vector<char>& buffer) {
  auto const across = static_cast<std::size_t>(unit.count * row_bytes);
  auto const bytes = static_cast<std::size_t>(unit.count * image_elements);
  if (buffer.size() < 2 * bytes) buffer.resize(2 * bytes);
  auto* const pixels = reinterpret_cast<unsigned char*>(buffer.data());
  auto const* levels = static_cast<unsigned char const*>(part.images.get()) + unit.first * image_elements;
  if (image_type_ != DataType::u8) {
    auto const* const numbers = static_cast<float const*>(part.images.get()) + unit.first * image_elements;
    to_levels(numbers, unit.count * image_elements, pixels + bytes);
    levels = pixels + bytes;
  }
  to_bitmap_rows(levels, unit.count, pixels);
  Index const image = part.chunk.first + unit.first, stride = columns() * row_bytes;
  Index const below = rows() - 1 - image / columns();  // rows of tiles below the image
  auto const at = io::bmp_prologue(1, 1).size() +
                  unsigned_of(below * image_size * stride + image % columns() * row_bytes);
  bitmap_->write_rows(at, static_cast<std::size_t>(stride), image_size, pixels, across);
}

void Output::flush() {
  for (auto const* file : {&output_, &bitmap_, &tiles_})
    if (*file) (*file)->flush();
}

void Output::note(Dealer::Written const& written) {
  std::lock_guard const lock(mutex_);
  if (written.images <= written_.images) return;
  written_ = written;
  if (progress_)
    progress_->write(key_ + " " + std::to_string(written.images) + " " + std::to_string(written.text_at));
}

void Output::write_pictures(unsigned char const* tiles) const {
  if (!request_.image.empty() && !has_bitmap()) {
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
  if (bitmap_) {
    std::string const prologue =
        io::bmp_prologue(static_cast<int>(columns() * image_size), static_cast<int>(rows() * image_size));
    bitmap_->write(0, prologue.data(), prologue.size());
    bitmap_->finish(prologue.size() + unsigned_of(columns() * rows() * image_elements));
  }
  if (output_) {
    if (!in_order()) output_->write(0, head_.data(), head_.size());
    output_->finish(is_array(request_.output)
                        ? head_.size() + unsigned_of(count_ * image_elements * size_of(request_.output_type))
                        : unsigned_of(written_.text_at));
  }
  finished_ = true;
  if (tiles_) tiles_->discard();
  if (progress_) progress_->remove();
}

}  // namespace cosmati::dcgan
