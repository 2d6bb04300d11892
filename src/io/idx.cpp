// Reads and writes IDX files.
#include "src/io/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/io/bad_file.h"
#include "src/io/file.h"
#include "src/io/gzip.h"
#include "src/io/raw_array.h"

namespace cosmati::io {
namespace {

ElementKind kind_of_code(unsigned code, std::string const& name) {
  switch (code) {
    case 0x08: return ElementKind::u8;
    case 0x09: return ElementKind::s8;
    case 0x0b: return ElementKind::s16;
    case 0x0c: return ElementKind::s32;
    case 0x0d: return ElementKind::f32;
    case 0x0e: return ElementKind::f64;
    default:
      bad_file(name,
               fmt::format("the IDX type byte {:#04x} is unknown; valid values: 0x08, 0x09, 0x0b, 0x0c, 0x0d "
                           "and 0x0e",
                           code));
  }
}

void read_header_bytes(ByteReader& reader, std::span<std::byte> to, std::string const& name) {
  if (reader.read(to) < to.size()) bad_file(name, "ends within its IDX header");
}

// What a header says about the data after it.
struct Promise {
  std::size_t bytes;
  std::string what, name;
};

constexpr std::size_t largest_reservation = std::size_t{1} << 28;

// Fills `to`, the part of the data from byte `first` on.
void read_data(ByteReader& reader, std::span<std::byte> to, std::size_t first, Promise const& promise) {
  if (std::size_t const got = reader.read(to); got < to.size())
    bad_file(promise.name, fmt::format("{} implies {} bytes of data, but only {} follow the header",
                                       promise.what, promise.bytes, first + got));
}

void expect_end(ByteReader& reader, Promise const& promise) {
  std::byte more[1];
  if (reader.read(more) != 0)
    bad_file(promise.name, fmt::format("{} implies {} bytes of data, but more follow the header",
                                       promise.what, promise.bytes));
}

// The buffer at most doubles at a time, and only after it has been filled, so that a false header cannot
// cause a huge allocation. It does not move up to a size that the input may have.
std::vector<std::byte> read_in_pieces(ByteReader& reader, Promise const& promise) {
  constexpr std::size_t first_piece = 65536;
  std::vector<std::byte> data;
  data.reserve(std::min({promise.bytes, reader.most(), largest_reservation}));
  while (data.size() < promise.bytes) {
    std::size_t const before = data.size();
    data.resize(before + std::min(promise.bytes - before, std::max(before, first_piece)));
    read_data(reader, std::span(data).subspan(before), before, promise);
  }
  return data;
}

}  // namespace

Tensor parse_idx(std::span<std::byte const> file, std::string const& name) {
  ByteReader reader(file, name);
  std::byte head[4];
  read_header_bytes(reader, head, name);
  if (head[0] != std::byte{0} || head[1] != std::byte{0})
    bad_file(name, "is not an IDX file: it does not begin with two zero bytes");
  ElementKind const kind = kind_of_code(static_cast<unsigned>(head[2]), name);
  unsigned const rank = static_cast<unsigned>(head[3]);
  if (rank < 1 || rank > max_rank)
    bad_file(name, fmt::format("has {} dimensions; valid values: 1 to {}", rank, max_rank));

  Shape shape;
  shape.rank = static_cast<int>(rank);
  for (int d = 0; d < shape.rank; ++d) {
    std::byte extent[4];
    read_header_bytes(reader, extent, name);
    for (std::byte const byte : extent) shape[d] = shape[d] << 8 | static_cast<Index>(byte);
  }
  Promise const promise{static_cast<std::size_t>(checked_bytes(shape, size_of(kind), name)),
                        fmt::format("the shape {} of {}", to_string(shape), name_of(kind)), name};
  if (size_of(kind) == 1 && promise.bytes <= std::min(reader.most(), largest_reservation)) {
    // Bytes are read to where they stay: memory that is not written to is not taken from the system.
    Tensor tensor(kind == ElementKind::u8 ? DataType::u8 : DataType::s8, shape);
    read_data(reader, {static_cast<std::byte*>(tensor.data()), promise.bytes}, 0, promise);
    expect_end(reader, promise);
    return tensor;
  }
  std::vector<std::byte> const data = read_in_pieces(reader, promise);
  expect_end(reader, promise);
  RawArray const array{name, kind, true, row_major(shape), data, nullptr};
  return kind == ElementKind::s16 ? to_tensor(array, DataType::s32) : to_tensor(array);
}

Tensor read_idx(std::string const& path) { return parse_idx(MappedFile(path).bytes(), path); }

}  // namespace cosmati::io
