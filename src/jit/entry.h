// One file of the kernel cache: a key and its kernel.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/jit/compile.h"

namespace cosmati::jit {

// Returns everything on which the machine code depends, as text: options, name expression, composed text, and
// path and SHA-256 of each reachable embedded header. It excludes the compiler's version: an entry records
// it, and a hit does not need to load the compiler.
std::string key_of(Source const& source);

// Returns the file name of a key. In theory two keys may have the same name; the file therefore contains the
// key.
std::string entry_name(std::string_view key);
bool is_entry_name(std::string_view name);

struct Entry {
  std::string key;
  Cubin cubin;  // without from_cache and cache_warning
};

// Layout, little-endian: 8 bytes "COSMATIK"; u32 version; key; image; lowered name, compiler, warnings; i32
// registers, local, shared, constant bytes; f64 seconds; u32 CRC-32 of everything before it. Texts and the
// image are preceded by a u64 length.
std::string format_entry(std::string_view key, Cubin const& cubin);

// Returns nullopt unless `file` is exactly an entry written by format_entry().
std::optional<Entry> parse_entry(std::span<std::byte const> file);

}  // namespace cosmati::jit
