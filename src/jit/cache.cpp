// The kernel cache: lookup, compilation and storage.
#include "src/jit/cache.h"

#include <fmt/format.h>
#include <utility>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "cosmati/ops/error.h"
#include "src/io/size_text.h"
#include "src/jit/run_all.h"

namespace cosmati::jit {
namespace {

constexpr int recount_interval = 64;  // entries stored before those of other processes are counted again

}  // namespace

CacheSettings cache_settings(std::string const& chosen) {
  CacheSettings settings;
  settings.folder = cache_folder(chosen);
  if (char const* const folders = std::getenv("COSMATI_CACHE_SHARED")) {
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');)
      if (!folder.empty()) settings.shared_folders.push_back(folder);
  }
  settings.max_bytes = io::size_from_environment("COSMATI_CACHE_SIZE", settings.max_bytes);
  return settings;
}

KernelCache::KernelCache(CacheSettings settings, Compiler compiler)
    : settings_(std::move(settings)), compiler_(std::move(compiler)) {}

Cubin KernelCache::get(Source const& source, bool allow_compile) {
  std::string const key = key_of(source);
  if (std::optional<Cubin> found = find(key)) return std::move(*found);
  if (!allow_compile)
    throw Error(ErrorCode::unavailable,
                fmt::format("{} is not in the kernel cache ({}) for {}, and compiling is not allowed",
                            source.name_expression, settings_.folder, source.architecture));

  std::promise<Cubin> promise;
  std::shared_future<Cubin> result;
  bool first = false;
  {
    std::lock_guard const lock(mutex_);
    auto const [at, inserted] = in_progress_.try_emplace(key);
    if (inserted) at->second = promise.get_future().share();
    result = at->second;
    first = inserted;
  }
  if (!first) return result.get();
  try {
    promise.set_value(find_or_compile(source, key));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  {
    std::lock_guard const lock(mutex_);
    in_progress_.erase(key);
  }
  return result.get();
}

std::vector<Cubin> KernelCache::get_all(std::span<Source const> sources, int threads) {
  std::vector<Cubin> cubins(sources.size());
  run_all(sources.size(), threads, [&](std::size_t index) { cubins[index] = get(sources[index]); });
  return cubins;
}

std::optional<Cubin> KernelCache::find(std::string const& key) {
  std::optional<Cubin> found;
  std::string refusal;
  if (!settings_.folder.empty()) found = load_entry(settings_.folder, key, true, refusal);
  for (std::string const& folder : settings_.shared_folders)
    if (!found) found = load_entry(folder, key, false, refusal);
  if (found) found->from_cache = true;
  if (!refusal.empty() && !told_.exchange(true))
    std::fprintf(stderr, "cosmati: kernel cache: %s\n", refusal.c_str());
  return found;
}

Cubin KernelCache::find_or_compile(Source const& source, std::string const& key) {
  // Another thread may have compiled it between our lookup and our turn.
  if (std::optional<Cubin> found = find(key)) return std::move(*found);
  return compile_again(source);
}

Cubin KernelCache::compile_again(Source const& source) {
  Cubin cubin = compiler_(source);
  store(key_of(source), cubin);
  return cubin;
}

void KernelCache::store(std::string const& key, Cubin& cubin) {
  if (settings_.folder.empty())
    return warn(cubin, "no folder was found; set COSMATI_CACHE, XDG_CACHE_HOME or HOME");
  if (settings_.max_bytes == 0) return;
  std::string const name = entry_name(key), file = format_entry(key, cubin);
  auto const bytes = static_cast<long long>(file.size());
  if (bytes > settings_.max_bytes)
    return warn(cubin, fmt::format("an entry of {} bytes exceeds the limit of the cache, {} bytes", bytes,
                                   settings_.max_bytes));
  try {
    store_entry(settings_.folder, name, file);
    keep_within_size(name, bytes);
  } catch (std::exception const& error) {  // the cache failed, but the kernel is usable
    warn(cubin, error.what());
  }
}

void KernelCache::keep_within_size(std::string_view name, long long bytes) {
  {
    std::lock_guard const lock(mutex_);
    ++stored_;
    if (folder_bytes_ >= 0) folder_bytes_ += bytes;
    if (folder_bytes_ >= 0 && folder_bytes_ <= settings_.max_bytes && stored_ % recount_interval != 0) return;
  }
  long long const left = trim(settings_.folder, settings_.max_bytes, name);
  std::lock_guard const lock(mutex_);
  folder_bytes_ = left;
}

void KernelCache::warn(Cubin& cubin, std::string const& reason) {
  std::lock_guard const lock(mutex_);
  if (warned_) return;
  warned_ = true;
  cubin.cache_warning = "compiled kernels are not cached: " + reason;
}

KernelCache& kernel_cache() {
  static KernelCache cache(cache_settings());
  return cache;
}

}  // namespace cosmati::jit
