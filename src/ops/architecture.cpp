// The table of compute capabilities.
#include "src/ops/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cosmati/ops/error.h"

namespace cosmati {
namespace {

struct Capability {
  int number;      // 10 * major + minor
  int shared_kib;  // of a multiprocessor; a block may have 1 KiB less from 8.0 on, which the system takes
  int threads;     // of a multiprocessor
  int blocks;      // of a multiprocessor
  int fma_f32, fma_f64, fma_half2;  // instructions of one lane, a clock and multiprocessor
  char const* card;                 // a GPU of this capability, or the most similar one that is known by name
};

// Shared memory and blocks: cuda_occupancy.h of CUDA 13.0 (cudaOccAlignUpShmemSizeVoltaPlus and
// cudaOccMaxBlocksPerSM). Threads: CUDA programming guide, technical specifications by compute capability.
// Rates: the same, throughput of native arithmetic instructions. 11.0 is not in that table: its rates are
// taken as those of 12.0. dp4a is 64 everywhere.
constexpr Capability capabilities[] = {
    {70, 96, 2048, 32, 64, 32, 64, "t4"},        {75, 64, 1024, 16, 64, 2, 64, "t4"},
    {80, 164, 2048, 32, 64, 32, 128, "a100"},    {86, 100, 1536, 16, 128, 2, 64, "rtx3060"},
    {87, 164, 1536, 16, 128, 2, 64, "rtx3060"},  {88, 100, 1536, 16, 128, 2, 64, "rtx3060"},
    {89, 100, 1536, 24, 128, 2, 64, "rtx4090"},  {90, 228, 2048, 32, 128, 64, 128, "h200"},
    {100, 228, 2048, 32, 128, 64, 128, "b200"},  {103, 228, 2048, 32, 128, 2, 128, "b200"},
    {110, 228, 1536, 24, 128, 2, 64, "rtx3060"}, {120, 100, 1536, 24, 128, 2, 64, "rtx5090"},
    {121, 100, 1536, 24, 128, 2, 64, "rtx5090"},
};
constexpr int oldest_compiled = 75;

int number_of(Gpu const& gpu) { return 10 * gpu.major + gpu.minor; }

// A capability that the table does not have takes the facts of the next one below.
Capability const& capability_of(int number) {
  Capability const* found = capabilities;
  for (Capability const& row : capabilities)
    if (row.number <= number) found = &row;
  return *found;
}

// The number in "sm_90a", and the letter behind it, if there is one that this capability has.
struct Name {
  int number = 0;
  std::string letter;
};
Name parsed(std::string const& name) {
  Name result;
  if (!name.starts_with("sm_")) return {};
  char const *const begin = name.data() + 3, *const end = name.data() + name.size();
  auto const digits = std::from_chars(begin, end, result.number);
  if (digits.ec != std::errc() || digits.ptr - begin < 2) return {};
  result.letter.assign(digits.ptr, end);
  bool const legal = result.letter.empty() || (result.letter == "a" && result.number >= 90) ||
                     (result.letter == "f" && result.number >= 100);
  return legal ? result : Name{};
}

std::string legal_names(std::vector<int> const& numbers) {
  std::string names;
  for (int const number : numbers) {
    if (!names.empty()) names += ", ";
    names += fmt::format("sm_{}", number);
    if (number >= 90) names += fmt::format(", sm_{}a", number);
    if (number >= 100) names += fmt::format(", sm_{}f", number);
  }
  return names;
}

}  // namespace

std::string architecture_of(Gpu const& gpu) {
  return fmt::format("sm_{}{}{}", gpu.major, gpu.minor, gpu.major >= 9 ? "a" : "");
}

std::string wgmma_device_violation(Gpu const& gpu) {
  if (number_of(gpu) == 90) return {};
  return fmt::format("wgmma needs compute capability 9.0; {} has {}.{}", gpu.name, gpu.major, gpu.minor);
}

void set_limits(Gpu& gpu) {
  Capability const& row = capability_of(number_of(gpu));
  gpu.shared_bytes_per_multiprocessor = row.shared_kib * 1024;
  gpu.shared_bytes_per_block = (row.shared_kib - (row.number >= 80 ? 1 : 0)) * 1024;
  gpu.threads_per_multiprocessor = row.threads;
  gpu.blocks_per_multiprocessor = row.blocks;
  set_rates(gpu);
}

void set_rates(Gpu& gpu) {
  Capability const& row = capability_of(number_of(gpu));
  gpu.fma_f32 = row.fma_f32;
  gpu.fma_f64 = row.fma_f64;
  gpu.fma_half2 = row.fma_half2;
  gpu.dp4a = 64;
}

Target target_of_architecture(std::string const& name, std::vector<int> const& compiled) {
  std::vector<int> numbers = compiled;
  if (numbers.empty())
    for (Capability const& row : capabilities) numbers.push_back(row.number);
  std::erase_if(numbers, [](int number) { return number < oldest_compiled; });
  Name const asked = parsed(name);
  if (std::find(numbers.begin(), numbers.end(), asked.number) == numbers.end())
    throw Error(ErrorCode::bad_request,
                fmt::format("--arch {}: {} {}", name,
                            compiled.empty() ? "there are" : "the run-time compiler here knows",
                            legal_names(numbers)));
  Gpu gpu = describe_gpu(capability_of(asked.number).card);
  if (number_of(gpu) != asked.number) {
    gpu.major = asked.number / 10;
    gpu.minor = asked.number % 10;
    gpu.name = fmt::format("a GPU of compute capability {}.{}", gpu.major, gpu.minor);
    set_limits(gpu);
  }
  return {gpu, asked.number == 90 ? architecture_of(gpu) : name};
}

}  // namespace cosmati
