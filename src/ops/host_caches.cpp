// Cache sizes as reported by the Linux kernel; cpuid is wrong in some virtual machines.
#include "src/ops/host_caches.h"

#include <charconv>
#include <fstream>

namespace cosmati {
namespace {

std::string first_word(std::string const& path) {
  std::ifstream file(path);
  std::string word;
  file.width(64);
  file >> word;
  return word;
}

// "32K", "1024K", "16M"; 0 for anything else.
long long cache_bytes(std::string const& text) {
  long long number = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string const unit(error == std::errc() ? end : text.data());
  long long const scale = unit == "K" ? 1024 : unit == "M" ? 1024 * 1024 : unit.empty() ? 1 : 0;
  constexpr long long maximum = 1ll << 30;  // limit in units
  return number > 0 && number < maximum ? number * scale : 0;
}

}  // namespace

HostCaches read_host_caches(std::string const& folder) {
  constexpr int max_caches = 16;
  HostCaches caches;
  for (int i = 0; i < max_caches; ++i) {
    std::string const cache = folder + "/index" + std::to_string(i) + '/';
    std::string const type = first_word(cache + "type"), level = first_word(cache + "level");
    if (type != "Data" && type != "Unified") continue;
    long long* const bytes = level == "1"   ? &caches.l1_bytes
                             : level == "2" ? &caches.l2_bytes
                             : level == "3" ? &caches.l3_bytes
                                            : nullptr;
    if (bytes != nullptr) *bytes = cache_bytes(first_word(cache + "size"));
  }
  return caches;
}

HostCaches const& host_caches() {
  static HostCaches const caches = read_host_caches("/sys/devices/system/cpu/cpu0/cache");
  return caches;
}

}  // namespace cosmati
