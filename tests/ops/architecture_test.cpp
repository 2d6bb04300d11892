// Architectures by name, and what follows from a compute capability.
#include "src/ops/architecture.h"

#include <gtest/gtest.h>

#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;

std::vector<int> const nvrtc_13{75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

TEST(Architecture, EveryOneOfTheCompilerIsTaken) {
  for (char const* name : {"sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90a", "sm_100",
                           "sm_100a", "sm_100f", "sm_103a", "sm_110a", "sm_120", "sm_120a", "sm_121a"}) {
    Target const target = target_of_architecture(name, nvrtc_13);
    EXPECT_EQ(target.architecture, name);
    int const number = 10 * target.gpu.major + target.gpu.minor;
    EXPECT_EQ(std::string(name).substr(3, number < 100 ? 2 : 3), std::to_string(number));
    EXPECT_GT(target.gpu.multiprocessors, 0);
    EXPECT_GT(target.gpu.clock_hertz, 0);
    EXPECT_EQ(wgmma_device_violation(target.gpu).empty(), number == 90) << name;
  }
  // Every GPU that runs sm_90 code runs sm_90a code.
  EXPECT_EQ(target_of_architecture("sm_90", nvrtc_13).architecture, "sm_90a");
}

TEST(Architecture, SharedMemoryAndThreadsFollowFromTheCapability) {
  auto const gpu = [](char const* name) { return target_of_architecture(name, nvrtc_13).gpu; };
  EXPECT_EQ(gpu("sm_75").shared_bytes_per_block, 64 * 1024);
  EXPECT_EQ(gpu("sm_87").shared_bytes_per_block, 163 * 1024);
  EXPECT_EQ(gpu("sm_86").shared_bytes_per_block, 99 * 1024);
  EXPECT_EQ(gpu("sm_86").threads_per_multiprocessor, 1536);
  EXPECT_EQ(gpu("sm_103").shared_bytes_per_block, 227 * 1024);
  EXPECT_EQ(gpu("sm_121").shared_bytes_per_block, 99 * 1024);
  EXPECT_EQ(gpu("sm_121").blocks_per_multiprocessor, 24);
  EXPECT_EQ(gpu("sm_103").fma_f64, 2);
  EXPECT_EQ(gpu("sm_88").name, "a GPU of compute capability 8.8");
  EXPECT_EQ(gpu("sm_120").name, describe_gpu("rtx5090").name);
}

// CUDA 12.8 and 12.9 call the capability 10.1 that CUDA 13 calls 11.0; both are those of Jetson Thor.
TEST(Architecture, ThorHasTwoNames) {
  std::vector<int> const nvrtc_12{75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121};
  for (char const* name : {"sm_101", "sm_101a", "sm_101f"}) {
    Target const target = target_of_architecture(name, nvrtc_12);
    EXPECT_EQ(target.architecture, name);
    Gpu gpu = target.gpu;
    EXPECT_EQ(architecture_of(gpu), "sm_101a");
    EXPECT_EQ(gpu.name, "a GPU of compute capability 10.1");
    Gpu const later = target_of_architecture("sm_110a", nvrtc_13).gpu;
    EXPECT_EQ(gpu.threads_per_multiprocessor, later.threads_per_multiprocessor);
    EXPECT_EQ(gpu.blocks_per_multiprocessor, later.blocks_per_multiprocessor);
    EXPECT_EQ(gpu.shared_bytes_per_block, later.shared_bytes_per_block);
    EXPECT_EQ(gpu.fma_f64, later.fma_f64);
    EXPECT_EQ(mma_rate(gpu, DataType::f32), mma_rate(later, DataType::f32));
    EXPECT_TRUE(features_of(gpu).clusters);
  }
}

// From the PTX manual: cp.async, and mma.sync of these shapes, since 8.0; e4m3 since 8.9; clusters and
// cp.async.bulk since 9.0; wgmma on 9.0 alone. WMMA of f16 since 7.0, for which nothing is compiled.
TEST(Architecture, FeaturesFollowFromTheCapability) {
  for (int const number : nvrtc_13) {
    SCOPED_TRACE(number);
    Gpu const gpu = target_of_architecture("sm_" + std::to_string(number), nvrtc_13).gpu;
    Features const& has = features_of(gpu);
    EXPECT_TRUE(has.wmma);
    EXPECT_EQ(has.async_copy, number >= 80);
    EXPECT_EQ(has.mma, number >= 80);
    EXPECT_EQ(has.fp8_mma, number >= 89);
    EXPECT_EQ(has.native_fp8_mma, number == 89 || number >= 100);
    EXPECT_EQ(has.large_f64_mma, number >= 90);
    EXPECT_EQ(has.clusters, number >= 90);
    EXPECT_EQ(has.bulk_copy, number >= 90);
    EXPECT_EQ(has.wgmma, number == 90);
    EXPECT_EQ(wmma_device_violation(DataType::s8, gpu), "");
    EXPECT_EQ(wmma_device_violation(DataType::bf16, gpu).empty(), number >= 80);
    EXPECT_EQ(mma_device_violation(DataType::s8, gpu).empty(), number >= 80);
    EXPECT_EQ(mma_device_violation(DataType::e5m2, gpu).empty(), number >= 89);
  }
  EXPECT_EQ(mma_device_violation(DataType::e4m3, describe_gpu("rtx3090")),
            "multiply mma of e4m3 needs compute capability 8.9; NVIDIA GeForce RTX 3090 has 8.6");
  EXPECT_EQ(feature_violation("cp.async", &Features::async_copy, describe_gpu("t4")),
            "cp.async needs compute capability 8.0; NVIDIA T4 has 7.5");
}

// Dense peaks of f16 products with sums in f32 and in f16, in TFLOP/s, from data sheets and, for GeForce
// cards, the white papers of their architectures. NVIDIA rounds, and computes L40S with a lower clock.
TEST(Architecture, RatesOfTensorCoresAreThoseOfDataSheets) {
  struct Peak {
    char const* name;
    double by_f32, by_f16;
  };
  for (Peak const& peak :
       {Peak{"a100", 312, 312}, Peak{"t4", 65, 65}, Peak{"a10", 125, 125}, Peak{"l4", 121, 121},
        Peak{"l40s", 362, 362}, Peak{"rtx3060", 25.5, 51}, Peak{"rtx3090", 71, 142},
        Peak{"rtx4090", 165.2, 330.3}, Peak{"rtx5090", 209.5, 419}}) {
    SCOPED_TRACE(peak.name);
    Gpu const gpu = describe_gpu(peak.name);
    double const clocks = 2e-12 * gpu.multiprocessors * gpu.clock_hertz;
    EXPECT_NEAR(clocks * mma_rate(gpu, DataType::f32) / peak.by_f32, 1, 0.015);
    EXPECT_NEAR(clocks * mma_rate(gpu, DataType::f16) / peak.by_f16, 1, 0.015);
    EXPECT_EQ(mma_rate(gpu, DataType::s32), mma_rate(gpu, DataType::f16));
  }
}

// The message names exactly the architectures for which the installed compiler generates code.
TEST(Architecture, RefusalsNameWhatIsCompiledFor) {
  std::vector<int> const old{70, 75, 80, 90};
  for (char const* name :
       {"sm_91", "sm_70", "sm_100", "sm_80a", "sm_90f", "90a", "sm_", "sm_9x", "compute_80", ""})
    EXPECT_EQ(complaint_of([&] { target_of_architecture(name, old); }),
              std::string("unknown architecture '") + name +
                  "'; the installed run-time compiler supports: sm_75, sm_80, sm_90, sm_90a");
  EXPECT_NE(complaint_of([&] { target_of_architecture("sm_91", {}); }).find("valid values: sm_75, sm_80"),
            std::string::npos);
}

}  // namespace
}  // namespace cosmati
