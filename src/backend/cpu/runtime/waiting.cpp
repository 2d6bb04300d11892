// Reads the number of running processes.
#include "src/backend/cpu/runtime/waiting.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace cosmati::cpu {

bool processors_are_shared(std::string_view proc_stat, int processors) {
  constexpr std::string_view key = "\nprocs_running ";
  std::size_t const at = proc_stat.find(key);
  if (at == std::string_view::npos) return false;
  std::string_view const number = proc_stat.substr(at + key.size());
  int running = 0;
  std::from_chars(number.data(), number.data() + number.size(), running);
  int const others = running - 1;
  return others > 0 && others * 8 >= processors;
}

bool processors_are_shared_now() {
  std::ifstream file("/proc/stat");
  std::string const text{std::istreambuf_iterator<char>(file), {}};
  return processors_are_shared(text, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace cosmati::cpu
