// GPU descriptions: known GPUs and text files.
#include <fmt/format.h>
#include <utility>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <variant>

#include "cosmati/ops/device.h"
#include "cosmati/ops/error.h"
#include "src/ops/architecture.h"
#include "src/ops/description_file.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

using Field = std::variant<int Gpu::*, long long Gpu::*, double Gpu::*, std::string Gpu::*>;

struct Key {
  char const* name;
  Field field;
  bool needed;
  char const* meaning;
};

constexpr char const* name_key = "name";
constexpr char const* capability_key = "compute_capability";

constexpr Key keys[] = {
    {"multiprocessors", &Gpu::multiprocessors, true, ""},
    {"shared_bytes_per_block", &Gpu::shared_bytes_per_block, true, "maximum that a kernel can opt in to"},
    {"shared_bytes_per_multiprocessor", &Gpu::shared_bytes_per_multiprocessor, false,
     "default: shared_bytes_per_block + 1024"},
    {"registers_per_multiprocessor", &Gpu::registers_per_multiprocessor, false, "of 32 bits"},
    {"threads_per_multiprocessor", &Gpu::threads_per_multiprocessor, false, ""},
    {"blocks_per_multiprocessor", &Gpu::blocks_per_multiprocessor, false, ""},
    {"l2_bytes", &Gpu::l2_bytes, false, ""},
    {"memory_bytes", &Gpu::memory_bytes, false, ""},
    {"clock_hertz", &Gpu::clock_hertz, true, "sustained clock, not base clock"},
    {"memory_bytes_per_second", &Gpu::memory_bytes_per_second, true, ""},
    {"fma_f32", &Gpu::fma_f32, false, "FMA lanes per clock per multiprocessor"},
    {"fma_f64", &Gpu::fma_f64, false, ""},
    {"fma_half2", &Gpu::fma_half2, false, "two products each"},
    {"dp4a", &Gpu::dp4a, false, "four products each"},
    {"cufft_failure", &Gpu::cufft_failure, false, "why cuFFT cannot be used; default: empty, it can"},
};

// Properties that do not follow from the compute capability, from the data sheets of the SXM modules and
// cards; clocks are boost clocks, L2 sizes are from the architecture white papers.
struct Card {
  char const* word;
  char const* name;
  int major, minor, multiprocessors;
  double l2_mib, memory_gb, clock_ghz, memory_gb_per_second;
};
constexpr Card cards[] = {
    {"h200", "NVIDIA H200", 9, 0, 132, 60, 141, 1.98, 4800},
    {"h100", "NVIDIA H100 SXM", 9, 0, 132, 50, 80, 1.98, 3350},
    {"a100", "NVIDIA A100 SXM 80GB", 8, 0, 108, 40, 80, 1.41, 2039},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 128, 72, 24, 2.52, 1008},
    {"t4", "NVIDIA T4", 7, 5, 40, 4, 16, 1.59, 320},
    {"b200", "NVIDIA B200", 10, 0, 148, 126, 180, 1.965, 8000},
    {"a10", "NVIDIA A10", 8, 6, 72, 6, 24, 1.695, 600},
    {"l4", "NVIDIA L4", 8, 9, 58, 48, 24, 2.04, 300},
    {"l40s", "NVIDIA L40S", 8, 9, 142, 96, 48, 2.52, 864},
    {"rtx3060", "NVIDIA GeForce RTX 3060", 8, 6, 28, 3, 12, 1.777, 360},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 8, 6, 82, 6, 24, 1.695, 936},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, 170, 96, 32, 2.407, 1792},
};

Gpu gpu_of(Card const& card) {
  Gpu gpu;
  gpu.name = card.name;
  gpu.major = card.major;
  gpu.minor = card.minor;
  gpu.multiprocessors = card.multiprocessors;
  set_limits(gpu);
  gpu.l2_bytes = std::llround(card.l2_mib * 1048576);
  gpu.memory_bytes = std::llround(card.memory_gb * 1e9);
  gpu.clock_hertz = card.clock_ghz * 1e9;
  gpu.memory_bytes_per_second = card.memory_gb_per_second * 1e9;
  return gpu;
}

std::vector<std::string> valid_keys() {
  std::vector<std::string> names{name_key, capability_key};
  for (Key const& key : keys) names.emplace_back(key.name);
  return names;
}

// Parses one description file.
class GpuFile {
 public:
  explicit GpuFile(std::string path) : file_(std::move(path)) {}

  Gpu read() {
    file_.read([this](std::string const& name, std::string_view value) { take(name, value); });
    file_.need(capability_key);
    for (Key const& key : keys)
      if (key.needed) file_.need(key.name);
    return finished();
  }

 private:
  void take(std::string const& name, std::string_view value) {
    if (name == name_key) {
      gpu_.name = value;
    } else if (name == capability_key) {
      take_capability(value);
    } else {
      auto const* const key =
          std::find_if(std::begin(keys), std::end(keys), [&](Key const& one) { return name == one.name; });
      if (key == std::end(keys)) file_.refuse(unknown_name("key", name, valid_keys(), "valid keys"));
      std::visit([&](auto member) { file_.parse(name, value, gpu_.*member); }, key->field);
    }
  }

  void take_capability(std::string_view value) {
    char const *const begin = value.data(), *const end = begin + value.size();
    int major = 0, minor = -1;
    auto const whole = std::from_chars(begin, end, major);
    bool right = whole.ec == std::errc() && whole.ptr != end && *whole.ptr == '.';
    if (right) {
      auto const fraction = std::from_chars(whole.ptr + 1, end, minor);
      right = fraction.ec == std::errc() && fraction.ptr == end && major > 0 && minor >= 0;
    }
    if (!right)
      file_.refuse(fmt::format("{} = {}; expected MAJOR.MINOR, for example 9.0", capability_key, value));
    gpu_.major = major;
    gpu_.minor = minor;
  }

  // Fills missing fields from the compute capability.
  Gpu finished() const {
    Gpu gpu = gpu_;
    set_limits(gpu);
    for (Key const& key : keys)
      if (file_.has(key.name)) std::visit([&](auto member) { gpu.*member = gpu_.*member; }, key.field);
    if (gpu.name.empty()) gpu.name = file_.path();
    if (gpu_.shared_bytes_per_multiprocessor == 0)
      gpu.shared_bytes_per_multiprocessor = gpu.shared_bytes_per_block + 1024;
    return gpu;
  }

  DescriptionFile file_;
  Gpu gpu_;
};

}  // namespace

Gpu describe_gpu(std::string const& name_or_file) {
  std::vector<std::string> names;
  for (Card const& card : cards) {
    if (card.word == name_or_file) return gpu_of(card);
    names.emplace_back(card.word);
  }
  if (!DescriptionFile::exists(name_or_file))
    throw Error(ErrorCode::bad_request, unknown_name("GPU", name_or_file, names, "valid values") +
                                            ", or a file written by `cosmati info --describe h200`");
  return GpuFile(name_or_file).read();
}

std::string to_text(Gpu const& gpu) {
  std::string text = "# A GPU as seen by the planner. Lines of the form key = value; # begins a comment.\n";
  text += fmt::format("{} = {}\n{} = {}.{}\n", name_key, gpu.name, capability_key, gpu.major, gpu.minor);
  for (Key const& key : keys) {
    text += std::visit([&](auto member) { return fmt::format("{} = {}", key.name, gpu.*member); }, key.field);
    text += *key.meaning == '\0' ? "\n" : fmt::format("  # {}\n", key.meaning);
  }
  return text;
}

}  // namespace cosmati
