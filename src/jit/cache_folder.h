// The folder of the kernel cache: where it is, what lies in it, what has to go.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/jit/entry.h"

namespace cosmati::jit {

// The folder that is written to: `chosen` (of --cache), else COSMATI_CACHE, else $XDG_CACHE_HOME/cosmati,
// else
// ~/.cache/cosmati; empty if there is none of these.
std::string cache_folder(std::string const& chosen = {});

struct CacheStatistics {
  long long files = 0;
  long long bytes = 0;
};
// Statistics of the entries in `folder`; zeros if it cannot be read.
CacheStatistics cache_statistics(std::string const& folder);

// The entry of `key` in `folder`; nothing if there is none, or what there is is damaged, foreign or of
// another key. Folder and file must belong to this user or root, and nobody else may write them; else
// `refusal` says what is wrong. `touch`: it counts as used now, to the minute.
std::optional<Cubin> load_entry(std::string const& folder, std::string_view key, bool touch,
                                std::string& refusal);

// Creates the folder where needed, for this user alone to write. Does nothing where load_entry() would not
// take it from there. Throws Error(system).
void store_entry(std::string const& folder, std::string_view name, std::string_view file);

// Removes what writers that died left behind and, if the entries have more than `most_bytes`, those not used
// for the longest time, down to nine tenths of it, but never `keep`. Returns the bytes that are left. If
// another process is at it, counts only.
long long trim(std::string const& folder, long long most_bytes, std::string_view keep);

}  // namespace cosmati::jit
