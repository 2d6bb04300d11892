// Processor descriptions: known processors and text files.
#include "cosmati/ops/processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/runtime/module.h"
#include "src/ops/description_file.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

// Each instruction set includes the previous ones.
constexpr char const* instruction_sets[] = {"SSE2", "AVX2", "AVX512", "AVX512_VNNI", "AVX512_BF16"};

bool set_instructions(Device& device, std::string_view name) {
  auto const* const found = std::find(std::begin(instruction_sets), std::end(instruction_sets), name);
  if (found == std::end(instruction_sets)) return false;
  auto const level = found - std::begin(instruction_sets);
  device.avx2 = level >= 1;
  device.avx512 = level >= 2;
  device.avx512_vnni = level >= 3;
  device.avx512_bf16 = level >= 4;
  return true;
}

constexpr long long KiB = 1024, MiB = 1024 * KiB;

Device processor(std::string_view instructions, int cores, long long l2_bytes, long long l3_bytes) {
  Device device;
  set_instructions(device, instructions);
  device.cores = cores;
  device.l1_bytes = 32 * KiB;
  device.l2_bytes = l2_bytes;
  device.l3_bytes = l3_bytes;
  return device;
}

std::vector<std::pair<std::string, Device>> known_processors() {
  return {{"sse2-only", processor("SSE2", 2, 256 * KiB, 4 * MiB)},
          {"avx2-laptop", processor("AVX2", 8, 512 * KiB, 16 * MiB)},
          {"avx512-server", processor("AVX512_BF16", 16, 1 * MiB, 32 * MiB)},
          {"64-core-server", processor("AVX512_BF16", 64, 1 * MiB, 256 * MiB)}};
}

Device read_processor(std::string const& path) {
  Device device;
  DescriptionFile file(path);
  file.read([&](std::string const& key, std::string_view value) {
    if (key == "instruction_set") {
      if (!set_instructions(device, value))
        file.refuse(fmt::format("{} = {}; expected {}", key, value, fmt::join(instruction_sets, ", ")));
      return;
    }
    if (key == "cores") return file.parse(key, value, device.cores);
    if (key == "l1_bytes") return file.parse(key, value, device.l1_bytes);
    if (key == "l2_bytes") return file.parse(key, value, device.l2_bytes);
    if (key == "l3_bytes") return file.parse(key, value, device.l3_bytes);
    file.refuse(unknown_name("key", key, {"instruction_set", "cores", "l1_bytes", "l2_bytes", "l3_bytes"},
                             "valid keys"));
  });
  file.need("instruction_set");
  file.need("cores");
  return device;
}

}  // namespace

bool is_processor(std::string const& name) {
  auto const known = known_processors();
  return std::any_of(known.begin(), known.end(), [&](auto const& one) { return one.first == name; });
}

std::string instruction_set(Device const& device) {
  return instruction_sets[device.avx512_bf16   ? 4
                          : device.avx512_vnni ? 3
                          : device.avx512      ? 2
                          : device.avx2        ? 1
                                               : 0];
}

Device describe_processor(std::string const& name_or_file, int threads) {
  Device device;
  std::vector<std::string> names;
  bool known = false;
  for (auto const& [name, one] : known_processors()) {
    names.push_back(name);
    if (name != name_or_file) continue;
    device = one;
    known = true;
  }
  if (!known) {
    if (!DescriptionFile::exists(name_or_file))
      throw Error(ErrorCode::bad_request, unknown_name("processor", name_or_file, names) +
                                              ", or a file written by `cosmati info --describe avx2-laptop`");
    device = read_processor(name_or_file);
  }
  device.threads = threads > 0 ? threads : device.cores;
  device.onednn = cpu::onednn_module() != nullptr;
  device.openblas = cpu::openblas_available();
  return device;
}

std::string processor_text(Device const& device) {
  std::string text =
      "# A processor as seen by the planner. Lines of the form key = value; # begins a comment.\n" +
      fmt::format("instruction_set = {}  # one of {}\ncores = {}\n", instruction_set(device),
                  fmt::join(instruction_sets, ", "), device.cores);
  auto const add = [&text](char const* key, long long bytes, char const* level) {
    if (bytes > 0) text += fmt::format("{} = {}  # {}\n", key, bytes, level);
  };
  add("l1_bytes", device.l1_bytes, "L1 data cache of a core");
  add("l2_bytes", device.l2_bytes, "L2 cache of a core");
  add("l3_bytes", device.l3_bytes, "L3 cache shared by cores");
  return text;
}

std::string processor_summary(Device const& device) {
  std::string text =
      fmt::format("{}, {} core{}", instruction_set(device), device.cores, device.cores == 1 ? "" : "s");
  auto const add = [&text](long long bytes, char const* level) {
    if (bytes == 0) return;
    text += bytes % MiB == 0 ? fmt::format(", {} MiB {}", bytes / MiB, level)
                             : fmt::format(", {} KiB {}", bytes / KiB, level);
  };
  add(device.l1_bytes, "L1d");
  add(device.l2_bytes, "L2");
  add(device.l3_bytes, "L3");
  return text;
}

}  // namespace cosmati
