// The table of compute capabilities.
#include "src/ops/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cosmati/ops/error.h"
#include "src/ops/number_types.h"

namespace cosmati {
namespace {

constexpr Features none{}, turing{.wmma = true};
constexpr Features ampere{.wmma = true, .async_copy = true, .mma = true};
constexpr Features ada{
    .wmma = true, .async_copy = true, .mma = true, .fp8_mma = true, .native_fp8_mma = true};
constexpr Features hopper{.wmma = true,
                          .async_copy = true,
                          .mma = true,
                          .fp8_mma = true,
                          .large_f64_mma = true,
                          .clusters = true,
                          .bulk_copy = true,
                          .wgmma = true};
constexpr Features blackwell{.wmma = true,
                             .async_copy = true,
                             .mma = true,
                             .fp8_mma = true,
                             .native_fp8_mma = true,
                             .large_f64_mma = true,
                             .clusters = true,
                             .bulk_copy = true};

struct Capability {
  int number;      // 10 * major + minor
  int shared_kib;  // per multiprocessor; since 8.0 a block may use 1 KiB less, which the system reserves
  int threads;     // per multiprocessor
  int blocks;      // per multiprocessor
  int fma_f32, fma_f64, fma_half2;  // lanes of an instruction per clock and multiprocessor
  int mma, mma_f64;  // multiply-adds by mma.sync of 16-bit factors, and of f64 (0: scalar multiply-adds)
  Features const& features;
  char const* card;  // a GPU of this capability, or the most similar one in the table of GPUs
};

// Shared memory and blocks: cuda_occupancy.h of CUDA 13.0 (cudaOccAlignUpShmemSizeVoltaPlus and
// cudaOccMaxBlocksPerSM). Threads: CUDA programming guide, technical specifications by compute capability.
// Rates: the same, throughput of native arithmetic instructions. 11.0, which CUDA 12 calls 10.1, is not in
// that table: its rates are taken as those of 12.0. dp4a is 64 everywhere. Rates of mma.sync: dense peaks of
// data sheets (T4, A100, A10, L4, L40S; Jetson AGX Orin for 8.7) and of the GA102, Ada and RTX Blackwell
// white papers, over multiprocessors and boost clock; on Hopper mma.sync reaches about 0.62 of wgmma's rate.
// clang-format off
constexpr Capability capabilities[] = {
    // shared threads blocks | fma: f32 f64 half2 | mma: 16-bit factors, f64
    {70,   96, 2048, 32,  64, 32,  64,   512,   0, none, "t4"},
    {75,   64, 1024, 16,  64,  2,  64,   512,   0, turing, "t4"},
    {80,  164, 2048, 32,  64, 32, 128,  1024,  61, ampere, "a100"},
    {86,  100, 1536, 16, 128,  2,  64,   512,   0, ampere, "rtx3060"},
    {87,  164, 1536, 16, 128,  2,  64,  1024,   0, ampere, "rtx3060"},
    {88,  100, 1536, 16, 128,  2,  64,   512,   0, ampere, "rtx3060"},
    {89,  100, 1536, 24, 128,  2,  64,   512,   0, ada, "rtx4090"},
    {90,  228, 2048, 32, 128, 64, 128,  mma_rate_of_h200, 122, hopper, "h200"},
    {100, 228, 2048, 32, 128, 64, 128,  1024,   0, blackwell, "b200"},
    {101, 228, 1536, 24, 128,  2,  64,  1024,   0, blackwell, "rtx3060"},
    {103, 228, 2048, 32, 128,  2, 128,  1024,   0, blackwell, "b200"},
    {110, 228, 1536, 24, 128,  2,  64,  1024,   0, blackwell, "rtx3060"},
    {120, 100, 1536, 24, 128,  2,  64,   512,   0, blackwell, "rtx5090"},
    {121, 100, 1536, 24, 128,  2,  64,   512,   0, blackwell, "rtx5090"},
};
// clang-format on
constexpr int oldest_compiled = 75;

int number_of(Gpu const& gpu) { return 10 * gpu.major + gpu.minor; }

// A capability missing from the table uses the next lower row.
Capability const& capability_of(int number) {
  Capability const* found = capabilities;
  for (Capability const& row : capabilities)
    if (row.number <= number) found = &row;
  return *found;
}
Capability const& capability_of(Gpu const& gpu) { return capability_of(number_of(gpu)); }

// The number in "sm_90a" and its suffix letter, if valid for this capability.
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

Features const& features_of(Gpu const& gpu) { return capability_of(gpu).features; }

std::string feature_violation(std::string const& what, bool Features::*feature, Gpu const& gpu) {
  if (features_of(gpu).*feature) return {};
  auto const* const first =
      std::ranges::find_if(capabilities, [feature](Capability const& row) { return row.features.*feature; });
  return fmt::format("{} needs compute capability {}.{}; {} has {}.{}", what, first->number / 10,
                     first->number % 10, gpu.name, gpu.major, gpu.minor);
}

std::string wgmma_device_violation(Gpu const& gpu) {
  return feature_violation("wgmma", &Features::wgmma, gpu);
}

std::string mma_device_violation(DataType factor, Gpu const& gpu) {
  return feature_violation(fmt::format("multiply mma of {}", name_of(factor)),
                           is_float8(factor) ? &Features::fp8_mma : &Features::mma, gpu);
}

std::string wmma_device_violation(DataType factor, Gpu const& gpu) {
  bool const early = factor == DataType::f16 || is_int8(factor);
  return feature_violation(fmt::format("multiply wmma of {}", name_of(factor)),
                           early ? &Features::wmma : &Features::mma, gpu);
}

// GeForce cards add to f32 at half the rate at which they add to f16 and s32 (the white papers list both);
// other GPUs of the same compute capability do not.
double mma_rate(Gpu const& gpu, DataType sum) {
  bool const is_half = sum == DataType::f32 && gpu.name.find("GeForce") != std::string::npos;
  return is_half ? 0.5 * capability_of(gpu).mma : capability_of(gpu).mma;
}

double mma_rate_f64(Gpu const& gpu) {
  int const rate = capability_of(gpu).mma_f64;
  return rate != 0 ? rate : 0.9 * gpu.fma_f64;
}

void set_limits(Gpu& gpu) {
  Capability const& row = capability_of(gpu);
  gpu.shared_bytes_per_multiprocessor = row.shared_kib * 1024;
  gpu.shared_bytes_per_block = (row.shared_kib - (row.number >= 80 ? 1 : 0)) * 1024;
  gpu.threads_per_multiprocessor = row.threads;
  gpu.blocks_per_multiprocessor = row.blocks;
  set_rates(gpu);
}

void set_rates(Gpu& gpu) {
  Capability const& row = capability_of(gpu);
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
                fmt::format("unknown architecture '{}'; {}: {}", name,
                            compiled.empty() ? "valid values" : "the installed run-time compiler supports",
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
