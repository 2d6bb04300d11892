// The folder of the kernel cache: its location, its entries, and their removal.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/jit/entry.h"

namespace cosmati::jit {

// The folder that is written to: `chosen` (of --cache), else COSMATI_CACHE, else $XDG_CACHE_HOME/cosmati,
// else ~/.cache/cosmati; empty if none of these is set.
std::string cache_folder(std::string const& chosen = {});

struct CacheStatistics {
  long long files = 0;
  long long bytes = 0;
};
// Statistics of the entries in `folder`; zeros if it cannot be read.
CacheStatistics cache_statistics(std::string const& folder);

// Returns the entry of `key` in `folder`; nullopt if there is none, or if it is damaged, of another format or
// of another key. Folder and file must belong to this user or root, and must not be writable by others;
// otherwise `refusal` contains the reason. `touch`: updates the time of last use, to the minute.
std::optional<Cubin> load_entry(std::string const& folder, std::string_view key, bool touch,
                                std::string& refusal);

// Creates the folder if necessary, writable only by this user. Does nothing if load_entry() would not accept
// the entry from it. Throws Error(system).
void store_entry(std::string const& folder, std::string_view name, std::string_view file);

// Removes the leftovers of killed writers and, if the entries exceed `max_bytes`, the least recently used
// ones, down to nine tenths of it, but never `keep`. Returns the remaining bytes. If another process is
// trimming, only counts the bytes.
long long trim(std::string const& folder, long long max_bytes, std::string_view keep);

}  // namespace cosmati::jit
