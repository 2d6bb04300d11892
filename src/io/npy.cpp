// Reads and writes .npy files: magic, version, header, data.
#include "src/io/npy.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "src/io/bad_file.h"
#include "src/io/file.h"
#include "src/io/npy_header.h"

namespace cosmati::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t data_alignment = 64;

// Everything before the data of a version 1.0 file, padded so that the data is aligned.
std::string prologue(TensorDescription const& description) {
  std::string header = print_npy_header(description);
  std::size_t const before = magic.size() + 4;
  header.resize(
      (before + header.size() + 1 + data_alignment - 1) / data_alignment * data_alignment - before - 1, ' ');
  header += '\n';
  std::string result(magic);
  result += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return result + header;
}

}  // namespace

RawArray parse_npy(std::span<std::byte const> file, std::string const& name) {
  std::string_view const text(reinterpret_cast<char const*>(file.data()), file.size());
  if (text.substr(0, magic.size()) != magic)
    bad_file(name, "is not a .npy file: it does not begin with \\x93NUMPY");
  if (text.size() < magic.size() + 2)
    bad_file(name, fmt::format("ends after {} bytes, in its header", text.size()));
  auto const byte_at = [&](std::size_t at) { return static_cast<unsigned>(file[at]); };
  unsigned const major = byte_at(6);
  unsigned const minor = byte_at(7);
  if (major < 1 || major > 3 || minor != 0)
    bad_file(name, fmt::format("is of .npy version {}.{}; valid values: 1.0, 2.0 and 3.0", major, minor));

  std::size_t const length_bytes = major == 1 ? 2 : 4;
  std::size_t const header_at = magic.size() + 2 + length_bytes;
  if (text.size() < header_at) bad_file(name, fmt::format("ends after {} bytes, in its header", text.size()));
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | byte_at(magic.size() + 2 + i);
  if (length > text.size() - header_at)
    bad_file(name, fmt::format("declares a header of {} bytes, but only {} follow", length,
                               text.size() - header_at));

  NpyHeader const header = parse_npy_header(text.substr(header_at, length), name);
  Index const promised = checked_bytes(header.shape, size_of(header.kind), name);
  std::size_t const data_at = header_at + length;
  if (static_cast<std::size_t>(promised) != file.size() - data_at)
    bad_file(name,
             fmt::format("the shape {} of {} implies {} bytes of data, but {} follow the header",
                         to_string(header.shape), name_of(header.kind), promised, file.size() - data_at));
  return {name,
          header.kind,
          header.big_endian,
          header.fortran_order ? column_major(header.shape) : row_major(header.shape),
          file.subspan(data_at),
          nullptr};
}

RawArray read_npy(std::string const& path) {
  auto const file = std::make_shared<MappedFile const>(path);
  RawArray array = parse_npy(file->bytes(), path);
  array.owner = file;
  return array;
}

void write_npy(std::string const& path, TensorDescription const& description, void const* data) {
  write_atomically(path, [&](FileWriter& writer) {
    writer.write(prologue(description));
    for_each_piece(description, data,
                   [&](void const* piece, std::size_t bytes) { writer.write(piece, bytes); });
  });
}

void write_npy(std::string const& path, Tensor const& tensor) {
  write_npy(path, tensor.description(), tensor.data());
}

std::string npy_bytes(TensorDescription const& description, void const* data) {
  std::string result = prologue(description);
  for_each_piece(description, data, [&](void const* piece, std::size_t bytes) {
    result.append(static_cast<char const*>(piece), bytes);
  });
  return result;
}

std::string npy_prologue(TensorDescription const& description) { return prologue(description); }

std::string npy_bytes(Tensor const& tensor) { return npy_bytes(tensor.description(), tensor.data()); }

}  // namespace cosmati::io
