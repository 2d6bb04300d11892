// Networks trained by one kernel: which layers are composed, what fits, and that the text compiles.
#include <gtest/gtest.h>

#include "nets/layers.h"
#include "nets/lenet5/model.h"
#include "src/backend/cuda/executor.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/network/emulated.h"
#include "src/plan/network/fused.h"

namespace cosmati {
namespace {

Device device_of(char const* gpu) {
  Device device;
  device.backend = Backend::cuda;
  device.gpu = describe_gpu(gpu);
  return device;
}

FusedNetwork composed(lenet5::Variant variant, Device const& device, DataType type = DataType::f32) {
  lenet5::Model model(variant, 1);
  nets::Assignment assignment = model.assignment(device);
  assignment.type = type;
  return model.sequence(nets::device_context(assignment, false), 1)->compose();
}

OptimizerProblem with_momentum() {
  OptimizerProblem problem;
  problem.momentum = 0.9;
  return problem;
}

TEST(FusedTraining, NetworksAreTheCatalogues) {
  Device const device = device_of("h200");
  for (bool const modern : {true, false}) {
    FusedNetwork network = composed(modern ? lenet5::Variant::modern : lenet5::Variant::chapter, device);
    network.images = plan::emulated_fused_images, network.threads = plan::emulated_fused_threads(false);
    network = with_resident_weights(network, plan::emulated_fused_bytes);
    EXPECT_EQ(network, plan::emulated_lenet5(modern, false));
  }
  EXPECT_EQ(composed(lenet5::Variant::lecun1998, device).layers, 0);  // partly connected
  EXPECT_EQ(composed(lenet5::Variant::modern, device, DataType::bf16).layers, 0);
}

TEST(FusedTraining, ABlockHasMoreImagesOfLargeBatches) {
  Device const device = device_of("h200");
  FusedNetwork const network = composed(lenet5::Variant::modern, device);
  auto const images = [&](Index batch, Device const& on) {
    return plan_fused(network, batch, with_momentum(), on).network.images;
  };
  EXPECT_EQ(images(64, device), 1);
  EXPECT_EQ(images(256, device), 2);
  EXPECT_EQ(images(1024, device), 4);
  EXPECT_EQ(images(4096, device), 4);
  EXPECT_LT(images(4096, device_of("rtx4090")), 4);  // 99 KiB a block
}

TEST(FusedTraining, RefusalsSayWhatDoesNotFit) {
  Device const device = device_of("h200");
  FusedNetwork const network = composed(lenet5::Variant::modern, device);
  auto const refusal = [&](FusedNetwork const& of, Device const& on) {
    return plan_fused(of, 64, with_momentum(), on).refusal;
  };
  EXPECT_EQ(refusal(network, device), "");
  EXPECT_NE(refusal(FusedNetwork(), device).find("a layer, loss or type"), std::string::npos);
  FusedNetwork odd = network;
  odd.layer[4].channels = 83;
  EXPECT_EQ(refusal(odd, device), "a fully connected layer has 83 inputs, not a multiple of 4");
  FusedNetwork wide = network;
  wide.layer[0].width = 64;
  EXPECT_EQ(refusal(wide, device), "a convolution has rows of 64 sums; at most 32");
  FusedNetwork large = network;
  large.layer[0].channels = 60;
  EXPECT_NE(refusal(large, device).find("a block has 232448"), std::string::npos) << refusal(large, device);
  Device cpu = device;
  cpu.backend = Backend::cpu;
  EXPECT_EQ(refusal(network, cpu), "the backend cpu does not run GPU kernels");
}

// Rows and planes are such that most loads of fragments access different banks; see FusedLayer::tf32.
TEST(FusedTraining, TensorCoresMultiplyConvolutionsInTf32) {
  auto const planned = [](char const* gpu, DataType factors) {
    Device const device = device_of(gpu);
    FusedNetwork const layers = composed(lenet5::Variant::modern, device);
    return plan_fused(layers, 64, with_momentum(), device, factors).network;
  };
  FusedNetwork const network = planned("h200", DataType::tf32);
  EXPECT_TRUE(network.layer[0].tf32 && network.layer[1].tf32);
  EXPECT_FALSE(network.layer[2].tf32);
  EXPECT_FALSE(planned("h200", DataType::f32).layer[0].tf32);
  EXPECT_FALSE(planned("t4", DataType::tf32).layer[0].tf32);  // sm_75 has no tf32
  FusedNetwork wide = composed(lenet5::Variant::modern, device_of("h200"));
  wide.layer[0].maps = wide.layer[1].channels = 72;  // sums for all maps would not fit in registers
  EXPECT_FALSE(
      plan_fused(wide, 64, with_momentum(), device_of("h200"), DataType::tf32).network.layer[0].tf32);
  // Arrays that fit in shared memory only as f32.
  FusedNetwork large = composed(lenet5::Variant::modern, device_of("h200"));
  large.layer[0].channels = 28;
  FusedPlan const exact = plan_fused(large, 64, with_momentum(), device_of("h200"));
  FusedPlan const rounded = plan_fused(large, 64, with_momentum(), device_of("h200"), DataType::tf32);
  EXPECT_EQ(exact.refusal, "");
  EXPECT_EQ(rounded.refusal, "");
  EXPECT_FALSE(rounded.network.layer[0].tf32);
  for (FusedLayer const& layer : {network.layer[0], network.layer[1]}) {
    EXPECT_TRUE(layer.row() % 32 >= 8 && layer.row() % 32 <= 24);
    EXPECT_TRUE(layer.channels == 1 || layer.plane() % 16 == 8);
    EXPECT_EQ(layer.gradient_plane(true) % 16, 8);
    EXPECT_EQ(layer.gradient_plane(false) % 8, 4);
    EXPECT_EQ((layer.gradient_row(true) - layer.width) % 8, 0);
  }
}

TEST(FusedTraining, TheKernelCompilesWithoutManySpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Device const device = device_of("h200");
  FusedNetwork const layers = composed(lenet5::Variant::modern, device);
  for (DataType const factors : {DataType::f32, DataType::tf32})
    for (Index const batch : {64, 1024}) {
      FusedPlan const plan = plan_fused(layers, batch, with_momentum(), device, factors);
      auto const cubin = jit::compile(cuda::kernel_source(plan::fused_kernel(plan), device.gpu));
      EXPECT_LE(cubin.local_bytes, 64) << name_of(factors) << ", batch " << batch;
      EXPECT_EQ(cubin.compiler_warnings, "");
    }
}

}  // namespace
}  // namespace cosmati
