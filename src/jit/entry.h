// One file of the kernel cache: a key and the kernel that it stands for.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/jit/compile.h"

namespace cosmati::jit {

// All that the machine code depends on, as text: options, name expression, composed text, and path and
// SHA-256 of each embedded header that it can reach. Not the compiler's build: an entry records it, and a hit
// need not open it.
std::string key_of(Source const& source);

// The name of the file for a key. Two keys may share a name, in theory: the file holds the whole key.
std::string entry_name(std::string_view key);
bool is_entry_name(std::string_view name);

struct Entry {
  std::string key;
  Cubin cubin;  // without from_cache and cache_warning
};

// Layout, little-endian: 8 bytes "COSMATIK"; u32 version; key; image; lowered name, compiler, warnings; i32
// registers, local, shared, constant bytes; f64 seconds; u32 CRC-32 of all before it. Texts and the image
// have a u64 length first.
std::string format_entry(std::string_view key, Cubin const& cubin);

// Nothing, unless `file` is byte for byte an entry that format_entry wrote.
std::optional<Entry> parse_entry(std::span<std::byte const> file);

}  // namespace cosmati::jit
