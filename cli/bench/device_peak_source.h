// Kernels that execute a single arithmetic instruction, to measure a GPU's peaks.
#pragma once
#include <string>

#include "cosmati/ops/device.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

// Multiply-adds of single threads (fma), and products of a warp by mma.sync and of a warpgroup by wgmma,
// named by the type of the factors. Sums are f32; s32 for s8; f64 for f64. u8 is as fast as s8, and e5m2 as
// e4m3.
enum class Peak : unsigned char {
  fma_f32,
  fma_f64,
  half2,
  dp4a,
  mma_f16,
  mma_bf16,
  mma_tf32,
  mma_e4m3,
  mma_s8,
  mma_f64,
  wgmma_f16,
  wgmma_bf16,
  wgmma_tf32,
  wgmma_e4m3,
  wgmma_s8,
};
inline constexpr Peak all_peaks[] = {Peak::fma_f32,    Peak::fma_f64,    Peak::half2,     Peak::dp4a,
                                     Peak::mma_f16,    Peak::mma_bf16,   Peak::mma_tf32,  Peak::mma_e4m3,
                                     Peak::mma_s8,     Peak::mma_f64,    Peak::wgmma_f16, Peak::wgmma_bf16,
                                     Peak::wgmma_tf32, Peak::wgmma_e4m3, Peak::wgmma_s8};

char const* name_of(Peak peak);  // "f32 fma", "bf16 wgmma"
bool is_of_tensor_cores(Peak peak);
// Whether the GPU has the instruction natively. (9.0 splits mma.sync of e4m3 into products of f16.)
bool has_peak(Peak peak, Gpu const& gpu);

struct PeakParameters {
  long long steps = 0;
  double factor = 0,
         addend = 0;  // for fma kernels: the bits of the values, since a register may hold several numbers
  void* result =
      nullptr;  // written only if a sum has an impossible value, so that the loop is not optimized away
};

// Instructions per step: each thread or warp executes independent chains of them in rounds. A warpgroup has
// one chain, because wgmma adds to the same sums without stalling.
struct PeakLoop {
  int chains = 0, rounds = 0;
};
inline constexpr int peak_threads = 256;  // threads per block
PeakLoop loop_of(Peak peak);
int blocks_of(Peak peak, int threads_per_multiprocessor);  // blocks per multiprocessor
double operations_of_step(Peak peak);                      // operations of one block per step
PeakParameters parameters_of(Peak peak, long long steps, void* result);

jit::Source peak_source(Peak peak, std::string const& architecture);

}  // namespace cosmati::cuda
