// Compiled kernels, kept on disk between runs and shared by all processes.
#pragma once
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/jit/cache_folder.h"
#include "src/jit/compile.h"

namespace cosmati::jit {

struct CacheSettings {
  std::string folder = {};                       // read and written; empty: nothing is kept
  std::vector<std::string> shared_folders = {};  // read only, looked into after `folder`
  long long most_bytes = 1LL << 30;              // in `folder`; 0: nothing is kept there
};

// From --cache (`chosen`; empty: not given) and the environment: COSMATI_CACHE and what cache_folder() says;
// COSMATI_CACHE_SHARED, folders between colons; COSMATI_CACHE_SIZE, bytes or a number with K, M, G or T (of
// 1024). Throws Error(bad_request) for a size that is none.
CacheSettings cache_settings(std::string const& chosen = {});

// May be used by many threads and processes at once, any of which may be killed at any time: a reader finds a
// whole entry or none, and no lock outlives its holder.
class KernelCache {
 public:
  using Compiler = std::function<Cubin(Source const&)>;
  explicit KernelCache(CacheSettings settings, Compiler compiler = compile);

  // From the cache, else compiled and stored. Threads that ask for the same kernel at once compile it once. A
  // folder that cannot be written is no error: the first kernel that could not be kept has a cache_warning.
  // What others may have written is ignored, with one line on stderr.
  // Throws Error: what the compiler throws; unavailable if it is not there and may not be compiled.
  Cubin get(Source const& source, bool allow_compile = true);

  // As get(), in parallel on `threads` threads; 0: as many as there are cores.
  std::vector<Cubin> get_all(std::span<Source const> sources, int threads = 0);

  CacheSettings const& settings() const { return settings_; }
  CacheStatistics statistics() const { return cache_statistics(settings_.folder); }

 private:
  std::optional<Cubin> find(std::string const& key);
  Cubin find_or_compile(Source const& source, std::string const& key);
  void store(std::string const& key, Cubin& cubin);
  void keep_within_size(std::string_view name, long long bytes);
  void warn(Cubin& cubin, std::string const& reason);

  CacheSettings settings_;
  Compiler compiler_;
  std::atomic<bool> told_ = false;  // on stderr, once: what was ignored because others may have written it
  std::mutex mutex_;                // of all below
  std::map<std::string, std::shared_future<Cubin>> in_progress_;  // by key
  bool warned_ = false;
  long long folder_bytes_ = -1;  // as we know it; -1: not counted yet
  int stored_ = 0;
};

// The cache of this process, of cache_settings() when it is first asked for.
KernelCache& kernel_cache();

}  // namespace cosmati::jit
