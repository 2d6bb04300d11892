// GPUs that need not be here: the known ones, and descriptions in text files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <variant>

#include "cosmati/ops/device.h"
#include "cosmati/ops/error.h"
#include "src/ops/description_file.h"

namespace cosmati {
namespace {

using Field = std::variant<int Gpu::*, long long Gpu::*, double Gpu::*>;

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
    {"shared_bytes_per_block", &Gpu::shared_bytes_per_block, true, "the most that a kernel may opt in to"},
    {"shared_bytes_per_multiprocessor", &Gpu::shared_bytes_per_multiprocessor, false,
     "1024 more than of a block, if not given"},
    {"registers_per_multiprocessor", &Gpu::registers_per_multiprocessor, false, "of 32 bits"},
    {"threads_per_multiprocessor", &Gpu::threads_per_multiprocessor, false, ""},
    {"blocks_per_multiprocessor", &Gpu::blocks_per_multiprocessor, false, ""},
    {"l2_bytes", &Gpu::l2_bytes, false, ""},
    {"memory_bytes", &Gpu::memory_bytes, false, ""},
    {"clock_hertz", &Gpu::clock_hertz, true, "that it reaches, not the base clock"},
    {"memory_bytes_per_second", &Gpu::memory_bytes_per_second, true, ""},
    {"fma_f32", &Gpu::fma_f32, false, "instructions of one lane, a clock and multiprocessor"},
    {"fma_f64", &Gpu::fma_f64, false, ""},
    {"fma_half2", &Gpu::fma_half2, false, "two products each"},
    {"dp4a", &Gpu::dp4a, false, "four products each"},
};

Gpu with_rates(Gpu gpu) {
  set_rates(gpu);
  return gpu;
}

// Shared memory, threads, blocks and L2 as the CUDA programming guide and the architecture white papers have
// them; memory and clock by the data sheets of the SXM modules and of the two cards.
std::vector<std::pair<std::string, Gpu>> known_gpus() {
  Gpu h200;
  h200.name = "NVIDIA H200";
  h200.major = 9;
  h200.multiprocessors = 132;
  h200.shared_bytes_per_block = 232448;
  h200.shared_bytes_per_multiprocessor = 233472;
  h200.l2_bytes = 62914560;
  h200.memory_bytes = 141'000'000'000;
  h200.clock_hertz = 1.98e9;
  h200.memory_bytes_per_second = 4.8e12;
  Gpu h100 = h200;
  h100.name = "NVIDIA H100 SXM";
  h100.l2_bytes = 52428800;
  h100.memory_bytes = 80'000'000'000;
  h100.memory_bytes_per_second = 3.35e12;
  Gpu a100;
  a100.name = "NVIDIA A100 SXM 80GB";
  a100.major = 8;
  a100.multiprocessors = 108;
  a100.shared_bytes_per_block = 166912;
  a100.shared_bytes_per_multiprocessor = 167936;
  a100.l2_bytes = 41943040;
  a100.memory_bytes = 80'000'000'000;
  a100.clock_hertz = 1.41e9;
  a100.memory_bytes_per_second = 2.039e12;
  Gpu ada;
  ada.name = "NVIDIA GeForce RTX 4090";
  ada.major = 8;
  ada.minor = 9;
  ada.multiprocessors = 128;
  ada.shared_bytes_per_block = 101376;
  ada.shared_bytes_per_multiprocessor = 102400;
  ada.threads_per_multiprocessor = 1536;
  ada.blocks_per_multiprocessor = 24;
  ada.l2_bytes = 75497472;
  ada.memory_bytes = 24'000'000'000;
  ada.clock_hertz = 2.52e9;
  ada.memory_bytes_per_second = 1.008e12;
  Gpu turing;
  turing.name = "NVIDIA T4";
  turing.major = 7;
  turing.minor = 5;
  turing.multiprocessors = 40;
  turing.shared_bytes_per_block = 65536;
  turing.shared_bytes_per_multiprocessor = 65536;
  turing.threads_per_multiprocessor = 1024;
  turing.blocks_per_multiprocessor = 16;
  turing.l2_bytes = 4194304;
  turing.memory_bytes = 16'000'000'000;
  turing.clock_hertz = 1.59e9;
  turing.memory_bytes_per_second = 3.2e11;
  return {{"h200", with_rates(h200)},
          {"h100", with_rates(h100)},
          {"a100", with_rates(a100)},
          {"rtx4090", with_rates(ada)},
          {"t4", with_rates(turing)}};
}

std::string legal_keys() {
  std::string text = std::string(name_key) + ", " + capability_key;
  for (Key const& key : keys) text += std::string(", ") + key.name;
  return text;
}

// One file.
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
      if (key == std::end(keys))
        file_.refuse(fmt::format("'{}' is no key; there are {}", name, legal_keys()));
      std::visit([&](auto member) { file_.parse(name, value, gpu_.*member); }, key->field);
    }
  }

  void take_capability(std::string_view value) {
    char const *const begin = value.data(), *const end = begin + value.size();
    auto const whole = std::from_chars(begin, end, gpu_.major);
    bool right = whole.ec == std::errc() && whole.ptr != end && *whole.ptr == '.';
    if (right) {
      auto const fraction = std::from_chars(whole.ptr + 1, end, gpu_.minor);
      right = fraction.ec == std::errc() && fraction.ptr == end && gpu_.major > 0 && gpu_.minor >= 0;
    }
    if (!right)
      file_.refuse(fmt::format("{} = {}: legal is MAJOR.MINOR, for example 9.0", capability_key, value));
  }

  // What was not given, from the compute capability.
  Gpu finished() const {
    Gpu gpu = gpu_;
    set_rates(gpu);
    for (Key const& key : keys)
      if (file_.has(key.name)) std::visit([&](auto member) { gpu.*member = gpu_.*member; }, key.field);
    if (gpu.name.empty()) gpu.name = file_.path();
    if (gpu.shared_bytes_per_multiprocessor == 0)
      gpu.shared_bytes_per_multiprocessor = gpu.shared_bytes_per_block + 1024;
    return gpu;
  }

  DescriptionFile file_;
  Gpu gpu_;
};

}  // namespace

// CUDA programming guide, throughput of native arithmetic instructions.
void set_rates(Gpu& gpu) {
  int const capability = gpu.major * 10 + gpu.minor;
  bool const datacenter =
      capability == 60 || capability == 70 || capability == 80 || capability == 90 || capability == 100;
  bool const half_of_32_lanes = gpu.major == 7 || capability == 60 || capability == 80;
  gpu.fma_f32 = half_of_32_lanes ? 64 : 128;
  gpu.fma_f64 = !datacenter ? 2 : half_of_32_lanes ? 32 : 64;
  gpu.fma_half2 = capability == 80 || capability == 90 || capability == 100 ? 128 : 64;
  gpu.dp4a = 64;
}

Gpu describe_gpu(std::string const& name_or_file) {
  std::string names;
  for (auto const& [name, gpu] : known_gpus()) {
    if (name == name_or_file) return gpu;
    names += name + ", ";
  }
  if (!DescriptionFile::exists(name_or_file))
    throw Error(ErrorCode::bad_request, "'" + name_or_file +
                                            "' is no GPU that is known by name, nor a file; "
                                            "there are " +
                                            names +
                                            "and files as `cosmati info --describe h200` "
                                            "writes them");
  return GpuFile(name_or_file).read();
}

std::string to_text(Gpu const& gpu) {
  std::string text = "# A GPU as a plan sees it. Lines of the form key = value; # begins a comment.\n";
  text += fmt::format("{} = {}\n{} = {}.{}\n", name_key, gpu.name, capability_key, gpu.major, gpu.minor);
  for (Key const& key : keys) {
    text += std::visit([&](auto member) { return fmt::format("{} = {}", key.name, gpu.*member); }, key.field);
    text += *key.meaning == '\0' ? "\n" : fmt::format("  # {}\n", key.meaning);
  }
  return text;
}

}  // namespace cosmati
