// Keys and entry files of the kernel cache.
#include "src/jit/entry.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "src/jit/embedded.h"

namespace cosmati::jit {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are little-endian");

constexpr std::string_view magic = "COSMATIK";
constexpr std::uint32_t format_version = 2;
constexpr std::string_view suffix = ".kernel";
constexpr std::size_t name_digits = 24;

std::uint32_t checksum(void const* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, static_cast<Bytef const*>(data), bytes));
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

template <class Number>
void append_number(std::string& file, Number value) {
  file.append(reinterpret_cast<char const*>(&value), sizeof value);
}

void append_bytes(std::string& file, void const* data, std::size_t bytes) {
  append_number(file, std::uint64_t{bytes});
  file.append(static_cast<char const*>(data), bytes);
}

// Reads fields in sequence; after one that does not fit, all further fields are empty.
class Reader {
 public:
  explicit Reader(std::span<std::byte const> rest) : rest_(rest) {}

  template <class Number>
  Number number() {
    Number value{};
    auto const bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<std::byte const> bytes() { return take(number<std::uint64_t>()); }
  std::string text() {
    auto const characters = bytes();
    return {reinterpret_cast<char const*>(characters.data()), characters.size()};
  }
  bool at_end() const { return fits_ && rest_.empty(); }

 private:
  std::span<std::byte const> take(std::uint64_t size) {
    fits_ = fits_ && size <= rest_.size();
    if (!fits_) return {};
    auto const taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::span<std::byte const> rest_;
  bool fits_ = true;
};

// The length makes the sequence of fields unambiguous.
void append_field(std::string& key, char const* what, std::string_view value) {
  key += fmt::format("{} {}\n", what, value.size());
  key.append(value);
  key += '\n';
}

}  // namespace

std::string key_of(Source const& source) {
  std::string key;
  key.reserve(source.text.size() + 4096);
  for (std::string const& option : compile_options(source)) append_field(key, "option", option);
  append_field(key, "name", source.name_expression);
  for (Header const* header : reachable_headers(source.text)) {
    append_field(key, "header", header->path);
    append_field(key, "sha256", header->sha256);
  }
  append_field(key, "text", source.text);
  return key;
}

std::string entry_name(std::string_view key) {
  return fmt::format("{:016x}{:08x}{}", fnv1a(key), checksum(key.data(), key.size()), suffix);
}

bool is_entry_name(std::string_view name) {
  return name.size() == name_digits + suffix.size() && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789abcdef") == name_digits;
}

std::string format_entry(std::string_view key, Cubin const& cubin) {
  std::string file;
  file.reserve(key.size() + cubin.image.size() + 1024);
  file += magic;
  append_number(file, format_version);
  append_bytes(file, key.data(), key.size());
  append_bytes(file, cubin.image.data(), cubin.image.size());
  for (std::string const* text : {&cubin.lowered_name, &cubin.compiler, &cubin.compiler_warnings})
    append_bytes(file, text->data(), text->size());
  for (int number : {cubin.registers, cubin.local_bytes, cubin.static_shared_bytes, cubin.constant_bytes})
    append_number(file, std::int32_t{number});
  append_number(file, cubin.compile_seconds);
  append_number(file, checksum(file.data(), file.size()));
  return file;
}

std::optional<Entry> parse_entry(std::span<std::byte const> file) {
  std::uint32_t stored = 0;
  if (file.size() < magic.size() + sizeof format_version + sizeof stored) return std::nullopt;
  auto const contents = file.first(file.size() - sizeof stored);
  std::memcpy(&stored, file.data() + contents.size(), sizeof stored);
  if (std::memcmp(file.data(), magic.data(), magic.size()) != 0 ||
      stored != checksum(contents.data(), contents.size()))
    return std::nullopt;
  Reader reader(contents.subspan(magic.size()));
  if (reader.number<std::uint32_t>() != format_version) return std::nullopt;
  Entry entry;
  entry.key = reader.text();
  auto const image = reader.bytes();
  entry.cubin.image.assign(image.begin(), image.end());
  for (std::string* text : {&entry.cubin.lowered_name, &entry.cubin.compiler, &entry.cubin.compiler_warnings})
    *text = reader.text();
  for (int* number : {&entry.cubin.registers, &entry.cubin.local_bytes, &entry.cubin.static_shared_bytes,
                      &entry.cubin.constant_bytes})
    *number = reader.number<std::int32_t>();
  entry.cubin.compile_seconds = reader.number<double>();
  if (!reader.at_end()) return std::nullopt;
  return entry;
}

}  // namespace cosmati::jit
