// Chooses the images and threads of a block, and prints the kernel.
#include "src/plan/network/fused.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/ops/architecture.h"
#include "src/plan/network/emulated.h"

namespace cosmati::plan {
namespace {

constexpr int emulated_blocks = 4;  // so that a block has several passes

std::string layer_text(FusedLayer const& l) {
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, FusedFunction({}), {}, {}, {}, {}, {}}}", l.channels,
                     l.height, l.width, l.maps, l.taps, l.padding, l.pool, l.maximum,
                     static_cast<int>(l.function), l.weight, l.bias, l.gaussian, l.tf32, l.resident);
}

bool in_catalogue(FusedNetwork const& network) {
  for (bool const modern : {false, true}) {
    if (network == emulated_lenet5(modern, false, false, true)) return true;
    for (bool const adam : {false, true})
      for (bool const team : {false, true})
        if (network == emulated_lenet5(modern, adam, team)) return true;
  }
  return false;
}

std::string refusal_of(FusedPlan const& plan) {
  FusedNetwork const& network = plan.network;
  Gpu const& gpu = plan.device.gpu;
  if (plan.device.backend != Backend::cuda && plan.device.backend != Backend::emulator)
    return fmt::format("the backend {} does not run GPU kernels", name_of(plan.device.backend));
  if (network.layers == 0) return "a layer, loss or type is not supported by the fused kernel";
  if (plan.batch > max_fused_batch)
    return fmt::format("a batch of {} images; at most {}", plan.batch, max_fused_batch);
  for (int i = 0; i < network.layers; ++i) {
    FusedLayer const& layer = network.layer[i];
    if (!layer.is_convolution() && layer.inputs() % 4 != 0)
      return fmt::format("a fully connected layer has {} inputs, not a multiple of 4", layer.inputs());
    if (layer.sum_columns() > max_fused_columns)
      return fmt::format("a convolution has rows of {} sums; at most {}", layer.sum_columns(),
                         max_fused_columns);
    if (layer.maximum && layer.channels * layer.plane() > max_fused_positions)
      return fmt::format("a convolution has {} inputs with padding; at most {} with max pooling",
                         layer.channels * layer.plane(), max_fused_positions);
  }
  if (plan.shared_bytes > gpu.shared_bytes_per_block)
    return fmt::format("the arrays of an image take {} bytes of shared memory; a block has {}",
                       plan.shared_bytes, gpu.shared_bytes_per_block);
  if (plan.device.backend == Backend::emulator && !in_catalogue(network))
    return "the emulator's catalogue has no kernel for this network";
  return {};
}

// A warp keeps the sums of all maps or channels of its tiles in registers.
bool by_tensor_cores(FusedLayer const& layer, Gpu const& gpu) {
  constexpr int most_taps = 8, most_maps = 64;  // taps: of a row, in one step
  return features_of(gpu).mma && layer.is_convolution() && layer.pool <= 2 && layer.taps <= most_taps &&
         layer.maps <= most_maps && layer.channels <= most_maps;
}

int shared_bytes(FusedNetwork const& network) {
  return layout_of(network).total * static_cast<int>(sizeof(float));
}

FusedPlan plan_with(FusedNetwork const& layers, Index batch, OptimizerProblem const& optimizer,
                    Device const& device, DataType factors, bool team) {
  FusedPlan plan{layers, optimizer, device, batch, 0, {}};
  FusedNetwork& network = plan.network;
  network.adam = optimizer.kind == OptimizerKind::adam;
  network.nesterov = optimizer.nesterov;
  network.team = team;
  bool const tf32 = factors == DataType::tf32;
  for (int i = 0; i < network.layers; ++i)
    network.layer[i].tf32 = tf32 && by_tensor_cores(network.layer[i], device.gpu);
  if (device.backend == Backend::emulator) {
    network.images = emulated_fused_images;
    network.threads = emulated_fused_threads(tf32);
    network = with_resident_weights(network, emulated_fused_bytes);
  } else {
    // Weights are read once for the images of a block, as long as all multiprocessors have images.
    network.threads = 512;
    Index const share = batch / std::max(device.gpu.multiprocessors, 1);
    for (network.images = 4; network.images > 1; network.images /= 2)
      if (network.images <= share + 1 && shared_bytes(network) <= device.gpu.shared_bytes_per_block) break;
    if (features_of(device.gpu).async_copy)
      network = with_resident_weights(network, device.gpu.shared_bytes_per_block);
  }
  plan.shared_bytes = shared_bytes(network);
  plan.refusal = refusal_of(plan);
  return plan;
}

}  // namespace

std::string fused_traits(FusedNetwork const& network) {
  std::string layers;
  for (int i = 0; i < network.layers; ++i) layers += (i > 0 ? ", " : "") + layer_text(network.layer[i]);
  return fmt::format("FusedTraits<FusedNetwork{{{}, {{{}}}, {}, {}, {}, {}, {}, {}}}>", network.layers,
                     layers, network.images, network.threads, network.blocks, network.adam, network.nesterov,
                     network.team);
}

program::KernelSpec fused_kernel(FusedPlan const& plan) {
  program::KernelSpec kernel;
  kernel.headers = {"network/training.h"};
  kernel.entry = "fused_training_kernel";
  kernel.traits = fused_traits(plan.network);
  kernel.asserted = {{"sizeof(FusedTrainingArguments)", sizeof(FusedTrainingArguments)},
                     {"layout_of(ComposedTraits::network).total * sizeof(float)",
                      static_cast<std::size_t>(plan.shared_bytes)}};
  kernel.threads = static_cast<unsigned>(plan.network.threads);
  kernel.shared_bytes = static_cast<unsigned>(plan.shared_bytes);
  kernel.label = "training of a fused network";
  return kernel;
}

int fused_blocks(FusedPlan const& plan, int resident) {
  Index const chunks = (plan.batch + plan.network.images - 1) / plan.network.images;
  if (plan.device.backend == Backend::emulator)
    return static_cast<int>(std::min<Index>(chunks, emulated_blocks));
  // Blocks without images help with the parameters' gradients.
  return plan.device.gpu.multiprocessors * std::min(resident, plan.network.blocks);
}

}  // namespace cosmati::plan

namespace cosmati {

FusedPlan plan_fused(FusedNetwork const& layers, Index batch, OptimizerProblem const& optimizer,
                     Device const& device, DataType factors, bool team) {
  FusedPlan plan = plan::plan_with(layers, batch, optimizer, device, factors, team);
  // The arrays for tensor cores may be too large; f32 needs less memory and is at least as accurate.
  if (factors == DataType::tf32 && !plan.refusal.empty())
    plan = plan::plan_with(layers, batch, optimizer, device, DataType::f32, team);
  return plan;
}

std::string FusedPlan::text() const {
  if (!refusal.empty()) return "trained layer by layer: " + refusal;
  bool const matrices = std::any_of(network.layer, network.layer + network.layers,
                                    [](FusedLayer const& layer) { return layer.tf32; });
  return fmt::format(
      "trained by one kernel for many steps: {} {} and {} threads per block, {} bytes of shared memory{}",
      network.images, network.images == 1 ? "image" : "images", network.threads, shared_bytes,
      matrices ? ", convolutions by tensor cores" : "");
}

}  // namespace cosmati
