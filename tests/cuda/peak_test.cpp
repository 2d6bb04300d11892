// The kernels that measure a GPU's peaks are what they should be: nothing but multiply-adds, in registers.
// Compiled, not run.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "src/backend/cuda/peak.h"
#include "src/jit/nvrtc.h"

namespace cosmati::cuda {
namespace {

// The low bits of an instruction's first word that name it, whatever its operands are. Machine code of
// compute capability 7.0 to 12.1: 16 bytes an instruction.
std::vector<std::uint64_t> codes_of(Peak peak) {
  switch (peak) {
    case Peak::fma_f32: return {0x023};
    case Peak::fma_f64: return {0x02b};
    case Peak::half2: return {0x031, 0x035};  // by two pipes
    case Peak::dp4a: break;
  }
  return {0x026};
}

// Instructions of these codes in the kernel's section of the image, which is an ELF file.
int count(jit::Cubin const& cubin, std::vector<std::uint64_t> const& codes) {
  auto const read = [&](std::size_t at, auto number) {
    std::memcpy(&number, cubin.image.data() + at, sizeof(number));
    return number;
  };
  auto const headers = read(0x28, std::uint64_t{});
  auto const header_bytes = read(0x3a, std::uint16_t{}), headers_count = read(0x3c, std::uint16_t{});
  auto const names_index = read(0x3e, std::uint16_t{});
  auto const names = read(headers + std::size_t{names_index} * header_bytes + 0x18, std::uint64_t{});
  int found = 0;
  for (std::size_t i = 0; i < headers_count; ++i) {
    std::size_t const header = headers + i * header_bytes;
    auto const* const name =
        reinterpret_cast<char const*>(cubin.image.data()) + names + read(header, std::uint32_t{});
    if (!std::string_view(name).starts_with(".text.")) continue;
    auto const begin = read(header + 0x18, std::uint64_t{}), bytes = read(header + 0x20, std::uint64_t{});
    for (std::uint64_t at = begin; at < begin + bytes; at += 16)
      for (std::uint64_t const code : codes)
        if ((read(at, std::uint64_t{}) & 0x1ff) == code) ++found;
  }
  return found;
}

TEST(PeakKernels, AreNothingButMultiplyAdds) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  for (char const* architecture : {"sm_80", "sm_89", "sm_90a"})
    for (Peak const peak : all_peaks) {
      SCOPED_TRACE(std::string(name_of(peak)) + " for " + architecture);
      jit::Cubin const cubin = jit::compile(peak_source(peak, architecture));
      EXPECT_EQ(cubin.local_bytes, 0);
      EXPECT_LE(cubin.registers, 64);
      EXPECT_LE(cubin.static_shared_bytes, 0);
      // Once unrolled; the compiler may unroll the loop over the steps as well.
      int const whole = peak_chains * peak_rounds, found = count(cubin, codes_of(peak));
      EXPECT_GE(found, whole);
      EXPECT_LE(found, 5 * whole);
    }
}

}  // namespace
}  // namespace cosmati::cuda
