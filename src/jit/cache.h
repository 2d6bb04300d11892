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
  std::vector<std::string> shared_folders = {};  // read only, searched after `folder`
  long long max_bytes = 1LL << 30;               // in `folder`; 0: nothing is kept there
};

// Returns the settings of --cache (`chosen`; empty: not given) and the environment: COSMATI_CACHE and the
// defaults of cache_folder(); COSMATI_CACHE_SHARED, folders separated by colons; COSMATI_CACHE_SIZE, bytes or
// a number with K, M, G or T (powers of 1024). Throws Error(bad_request) for an invalid size.
CacheSettings cache_settings(std::string const& chosen = {});

// May be used by many threads and processes concurrently, any of which may be killed at any time: a reader
// finds a complete entry or none, and no lock outlives its holder.
class KernelCache {
 public:
  using Compiler = std::function<Cubin(Source const&)>;
  explicit KernelCache(CacheSettings settings, Compiler compiler = compile);

  // Returns the kernel from the cache, or compiles and stores it. Threads that request the same kernel
  // concurrently compile it once. A folder that is not writable is not an error: the first kernel that could
  // not be kept has a cache_warning. Entries that other users may have written are ignored, with one line on
  // stderr.
  // Throws Error: the compiler's errors; unavailable if the kernel is not in the cache and must not be
  // compiled.
  Cubin get(Source const& source, bool allow_compile = true);

  // Compiles the kernel and replaces its entry, which a newer compiler than the driver's may have written.
  Cubin compile_again(Source const& source);

  // Like get(), in parallel on `threads` threads; 0: one per core.
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
  std::atomic<bool> told_ = false;  // whether ignored entries were reported on stderr
  std::mutex mutex_;                // protects the following members
  std::map<std::string, std::shared_future<Cubin>> in_progress_;  // by key
  bool warned_ = false;
  long long folder_bytes_ = -1;  // as known to this process; -1: not counted yet
  int stored_ = 0;
};

// The cache of this process, created with cache_settings() on first use.
KernelCache& kernel_cache();

}  // namespace cosmati::jit
