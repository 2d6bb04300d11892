// Facts that follow from a GPU's compute capability, and the architectures that code is compiled for.
#pragma once
#include <string>
#include <vector>

#include "cosmati/core/number.h"
#include "cosmati/ops/device.h"

namespace cosmati {

// The architecture that code for this GPU is compiled for, including architecture-specific features:
// "sm_90a".
std::string architecture_of(Gpu const& gpu);

// Instructions that depend on the compute capability.
struct Features {
  bool wmma = false;        // WMMA with f16 and 8-bit integers
  bool async_copy = false;  // cp.async
  bool mma = false;      // mma.sync of 16-bit types, TF32, f64 and 8-bit integers; WMMA of bf16, TF32 and f64
  bool fp8_mma = false;  // mma.sync of e4m3 and e5m2
  bool native_fp8_mma = false;  // fp8 mma.sync is native, not assembled into f16 products
  bool large_f64_mma = false;   // mma.sync of f64 has 16 rows; WMMA has 8 on every GPU
  bool clusters = false;        // clusters of blocks
  bool bulk_copy = false;       // cp.async.bulk
  bool wgmma = false;
};
Features const& features_of(Gpu const& gpu);

// "cp.async needs compute capability 8.0; NVIDIA T4 has 7.5": why the GPU lacks a feature that `what` names;
// empty if it has the feature.
std::string feature_violation(std::string const& what, bool Features::*feature, Gpu const& gpu);
std::string wgmma_device_violation(Gpu const& gpu);
// The same for tensor cores that multiply elements of `factor` by mma.sync or WMMA.
std::string mma_device_violation(DataType factor, Gpu const& gpu);
std::string wmma_device_violation(DataType factor, Gpu const& gpu);

// Multiply-adds by mma.sync per clock and multiprocessor: mma_rate() for 16-bit factors with sums in `sum`,
// mma_rate_f64() for f64.
double mma_rate(Gpu const& gpu, DataType sum);
inline constexpr int mma_rate_of_h200 = 1270;  // on which predictions were fitted
double mma_rate_f64(Gpu const& gpu);

// A GPU to plan for, and the architecture of its code.
struct Target {
  Gpu gpu;
  std::string architecture;
};
// The target of an architecture name: "sm_80"; "sm_100a" with architecture-specific features; "sm_100f" with
// family-specific features. sm_90 is compiled as sm_90a, since every GPU of that capability runs it and no
// other GPU runs either. `compiled`: the capabilities that the installed compiler supports (75, 80, ...);
// empty if it is not installed, in which case all known ones are valid. Throws Error(bad_request) with the
// valid names.
Target target_of_architecture(std::string const& name, std::vector<int> const& compiled);

// Sets the fields of `gpu` that depend on its compute capability: shared memory, threads, blocks and rates.
void set_limits(Gpu& gpu);

}  // namespace cosmati
