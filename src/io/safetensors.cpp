// Reads and writes safetensors files: length of the header, header, data.
#include "src/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "src/io/bad_file.h"
#include "src/io/file.h"
#include "src/io/safetensors_header.h"

namespace cosmati::io {
namespace {

constexpr std::size_t longest_header = 100'000'000;
constexpr std::size_t length_bytes = 8;

// Returns the header's text after checking its length.
std::string_view header_text(std::span<std::byte const> file, std::string const& name) {
  if (file.size() < length_bytes)
    bad_file(name, fmt::format(
                       "is not a safetensors file: it has {} bytes, fewer than the 8 of its header's length",
                       file.size()));
  std::size_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;) length = length << 8 | static_cast<std::size_t>(file[i]);
  if (length > longest_header)
    bad_file(name, fmt::format("is not a safetensors file: it declares a header of {} bytes; the limit is {}",
                               length, longest_header));
  if (length > file.size() - length_bytes)
    bad_file(name, fmt::format("declares a header of {} bytes, but only {} follow", length,
                               file.size() - length_bytes));
  std::string_view const text(reinterpret_cast<char const*>(file.data()) + length_bytes, length);
  if (text.substr(0, 1) != "{")
    bad_file(name, "is not a safetensors file: its header does not begin with '{'");
  return text;
}

void check_extent(SafetensorsEntry const& entry, std::size_t data_bytes, std::string const& name) {
  std::string const tensor = "tensor " + in_quotes(entry.name);
  Index const promised = checked_bytes(entry.shape, size_of(entry.kind), name + ", " + tensor);
  if (entry.begin > entry.end || entry.end > data_bytes)
    bad_file(name, fmt::format("{} has the data_offsets {} and {}, which are not within the {} bytes of data",
                               tensor, entry.begin, entry.end, data_bytes));
  if (entry.end - entry.begin != static_cast<std::size_t>(promised))
    bad_file(name,
             fmt::format("{} of {} {} implies {} bytes, but its data_offsets span {}", tensor,
                         name_of(entry.kind), to_string(entry.shape), promised, entry.end - entry.begin));
}

// Checks that the entries, sorted by offset, cover the data without gaps or overlaps.
void check_cover(std::vector<SafetensorsEntry> const& entries, std::size_t data_bytes,
                 std::string const& name) {
  std::size_t expected = 0;
  for (SafetensorsEntry const& entry : entries) {
    if (entry.begin != expected)
      bad_file(name,
               fmt::format("tensor {} begins at byte {} of the data, {} the one before it, which ends at {}",
                           in_quotes(entry.name), entry.begin,
                           entry.begin < expected ? "overlapping" : "leaving a gap after", expected));
    expected = entry.end;
  }
  if (expected != data_bytes)
    bad_file(name, fmt::format("its tensors take {} bytes, but {} follow the header", expected, data_bytes));
}

}  // namespace

SafetensorsFile SafetensorsFile::parse(std::span<std::byte const> file, std::string const& name) {
  std::string_view const text = header_text(file, name);
  SafetensorsHeader header = parse_safetensors_header(text, name);
  std::span<std::byte const> const data = file.subspan(length_bytes + text.size());
  std::sort(header.entries.begin(), header.entries.end(), [](auto const& a, auto const& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (SafetensorsEntry const& entry : header.entries) check_extent(entry, data.size(), name);
  check_cover(header.entries, data.size(), name);

  SafetensorsFile result;
  result.name_ = name;
  result.metadata_ = std::move(header.metadata);
  for (SafetensorsEntry const& entry : header.entries)
    result.tensors_.emplace(
        entry.name,
        RawArray{fmt::format("{}, tensor {}", name, in_quotes(entry.name)), entry.kind, false,
                 row_major(entry.shape), data.subspan(entry.begin, entry.end - entry.begin), nullptr});
  return result;
}

SafetensorsFile SafetensorsFile::open(std::string const& path) {
  auto const file = std::make_shared<MappedFile const>(path);
  SafetensorsFile result = parse(file->bytes(), path);
  for (auto& entry : result.tensors_) entry.second.owner = file;
  return result;
}

RawArray const& SafetensorsFile::at(std::string const& tensor) const {
  auto const found = tensors_.find(tensor);
  if (found != tensors_.end()) return found->second;
  constexpr std::size_t maximum = 12;
  std::string there;
  std::size_t count = 0;
  for (auto const& entry : tensors_) {
    if (count++ == maximum) {
      there += fmt::format(" and {} more", tensors_.size() - maximum);
      break;
    }
    there += (there.empty() ? "" : ", ") + in_quotes(entry.first);
  }
  bad_file(name_,
           fmt::format("has no tensor {}; it has {}", in_quotes(tensor), there.empty() ? "none" : there));
}

void write_safetensors(std::string const& path, std::vector<NamedTensor> tensors,
                       std::map<std::string, std::string> const& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](NamedTensor const& a, NamedTensor const& b) {
    int const a_bytes = size_of(a.description.type);
    int const b_bytes = size_of(b.description.type);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
  });
  SafetensorsHeader header;
  header.metadata = metadata;
  std::map<std::string, int> taken;
  std::size_t end = 0;
  for (NamedTensor const& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || ++taken[tensor.name] > 1)
      throw Error(ErrorCode::bad_request,
                  fmt::format("{}: {} cannot be the name of a tensor: it is {}", path, in_quotes(tensor.name),
                              tensor.name.empty()             ? "empty"
                              : tensor.name == "__metadata__" ? "reserved"
                                                              : "taken"));
    std::size_t const begin = end;
    end += static_cast<std::size_t>(checked_size(tensor.description.shape(), tensor.description.type) *
                                    size_of(tensor.description.type));
    header.entries.push_back(
        {tensor.name, kind_of(tensor.description.type), tensor.description.shape(), begin, end});
  }
  std::string text = print_safetensors_header(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length;
  for (std::size_t i = 0; i < length_bytes; ++i) length += static_cast<char>(text.size() >> 8 * i & 0xff);

  write_atomically(path, [&](FileWriter& writer) {
    writer.write(length);
    writer.write(text);
    for (NamedTensor const& tensor : tensors)
      for_each_piece(tensor.description, tensor.data,
                     [&](void const* piece, std::size_t bytes) { writer.write(piece, bytes); });
  });
}

}  // namespace cosmati::io
