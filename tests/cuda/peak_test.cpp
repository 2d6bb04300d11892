// The kernels that measure a GPU's peaks consist of back-to-back instructions of one kind, without spills.
// They are compiled but not run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cli/bench/device_peaks.h"
#include "src/jit/nvrtc.h"
#include "src/ops/architecture.h"

namespace cosmati::cuda {
namespace {

// The low bits of the first word, which identify an instruction independently of its operands, for compute
// capabilities 7.0 to 12.1 (16 bytes per instruction).
std::vector<std::uint64_t> codes_of(Peak peak) {
  switch (peak) {
    case Peak::fma_f32: return {0x023};
    case Peak::fma_f64: return {0x02b};
    case Peak::half2: return {0x031, 0x035};  // issued by two pipes
    case Peak::dp4a: return {0x026};
    case Peak::mma_f16:
    case Peak::mma_bf16:
    case Peak::mma_tf32: return {0x03c};    // HMMA
    case Peak::mma_e4m3: return {0x07a};    // QMMA
    case Peak::mma_s8: return {0x037};      // IMMA
    case Peak::mma_f64: return {0x03f};     // DMMA
    case Peak::wgmma_e4m3: return {0x1f3};  // QGMMA
    case Peak::wgmma_s8: return {0x1f1};    // IGMMA
    default: return {0x1f0};                // HGMMA
  }
}

// The instructions in the kernel's section of the ELF image.
std::vector<std::uint64_t> instructions_of(jit::Cubin const& cubin) {
  auto const read = [&](std::size_t at, auto number) {
    std::memcpy(&number, cubin.image.data() + at, sizeof(number));
    return number;
  };
  auto const headers = read(0x28, std::uint64_t{});
  auto const header_bytes = read(0x3a, std::uint16_t{}), headers_count = read(0x3c, std::uint16_t{});
  auto const names_index = read(0x3e, std::uint16_t{});
  auto const names = read(headers + std::size_t{names_index} * header_bytes + 0x18, std::uint64_t{});
  std::vector<std::uint64_t> codes;
  for (std::size_t i = 0; i < headers_count; ++i) {
    std::size_t const header = headers + i * header_bytes;
    auto const* const name =
        reinterpret_cast<char const*>(cubin.image.data()) + names + read(header, std::uint32_t{});
    if (!std::string_view(name).starts_with(".text.")) continue;
    auto const begin = read(header + 0x18, std::uint64_t{}), bytes = read(header + 0x20, std::uint64_t{});
    for (std::uint64_t at = begin; at < begin + bytes; at += 16)
      codes.push_back(read(at, std::uint64_t{}) & 0x1ff);
  }
  return codes;
}

// The number of instructions in `codes`, and the number of others between the first and the last of them.
struct Count {
  int found = 0, between = 0;
};
Count count(std::vector<std::uint64_t> const& instructions, std::vector<std::uint64_t> const& codes) {
  Count result;
  int others = 0;
  for (std::uint64_t const code : instructions) {
    if (std::find(codes.begin(), codes.end(), code) == codes.end()) {
      ++others;
      continue;
    }
    if (result.found++ > 0) result.between += others;
    others = 0;
  }
  return result;
}

TEST(PeakKernels, AreNothingButOneInstruction) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  for (char const* const name : {"sm_80", "sm_86", "sm_89", "sm_90a"}) {
    auto const [gpu, architecture] = target_of_architecture(name, {});
    for (Peak const peak : all_peaks) {
      SCOPED_TRACE(std::string(name_of(peak)) + " for " + architecture);
      if (!has_peak(peak, gpu)) continue;
      jit::Cubin const cubin = jit::compile(peak_source(peak, architecture));
      bool const by_warpgroups = peak >= Peak::wgmma_f16;
      EXPECT_EQ(cubin.local_bytes, 0);
      EXPECT_EQ(cubin.compiler_warnings, "") << "wgmma is not serialized";
      EXPECT_LE(cubin.registers, by_warpgroups ? 168 : is_of_tensor_cores(peak) ? 128 : 64);
      EXPECT_LE(cubin.static_shared_bytes, by_warpgroups ? 48 * 1024 : 0);
      Count const counted = count(instructions_of(cubin), codes_of(peak));
      PeakLoop const loop = loop_of(peak);
      // Before 9.0 a product of doubles is split in two with 8 rows each.
      int const whole =
          loop.chains * loop.rounds * (peak == Peak::mma_f64 && !features_of(gpu).large_f64_mma ? 2 : 1);
      if (!is_of_tensor_cores(peak)) {
        // At least one unrolled step; the compiler may also unroll the loop over the steps.
        EXPECT_GE(counted.found, whole);
        EXPECT_LE(counted.found, 5 * whole);
        continue;
      }
      EXPECT_EQ(counted.found, whole);
      // Warps issue during each other's products, which take 4 to 32 clocks (128 for wgmma): doubles are
      // moved, and descriptors are copied to uniform registers.
      EXPECT_LE(counted.between, (by_warpgroups ? 4 : 2) * whole);
    }
  }
}

}  // namespace
}  // namespace cosmati::cuda
