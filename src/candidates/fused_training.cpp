// Runs the kernel of a fused network on the backends cuda and emulator.
#include "cosmati/ops/fused_training.h"

#include <algorithm>
#include <optional>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/cooperative.h"
#include "src/backend/cuda/driver/resources.h"
#include "src/backend/emulator/catalogue.h"
#include "src/plan/network/fused.h"

namespace cosmati {

struct FusedTraining::Launch {
  explicit Launch(FusedPlan const& plan) : kernel(plan::fused_kernel(plan)), threads(plan.device.threads) {
    if (plan.device.backend == Backend::cuda) {
      on_device.emplace(kernel, plan.device.gpu);
      resident = on_device->resident_blocks();
      return;
    }
    emulated = emulator::catalogue().kernel(kernel.key());
    if (emulated == nullptr)
      throw Error(ErrorCode::unavailable, "the emulator's catalogue has no kernel " + kernel.key());
  }
  void operator()(int blocks, FusedTrainingArguments const& arguments, Stream stream) const {
    if (on_device)
      on_device->launch(blocks, arguments, stream);
    else
      emulated({blocks, 1, 1}, static_cast<int>(kernel.threads), kernel.shared_bytes, &arguments, threads);
  }

  program::KernelSpec kernel;
  int threads, resident = 1;
  std::optional<cuda::CooperativeKernel> on_device;
  emulator::RunKernel emulated = nullptr;
};

namespace {

DeviceMemory zeros(Device const& device, Index count) {
  DeviceMemory memory(device, static_cast<std::size_t>(std::max<Index>(count, 1)) * sizeof(float));
  memory.fill(0);
  return memory;
}

}  // namespace

bool can_train_together(std::vector<Device> const& devices) {
  if (devices.size() < 2 || devices.size() > max_fused_members) return false;
  for (Device const& device : devices)
    if (device.backend != devices[0].backend) return false;
  if (devices[0].backend == Backend::emulator) return true;
  if (devices[0].backend != Backend::cuda) return false;
  for (Device const& from : devices)
    for (Device const& to : devices)
      if (&from != &to && !cuda::enable_peer_access(from.gpu.ordinal, to.gpu.ordinal)) return false;
  return true;
}

FusedTraining::FusedTraining(FusedPlan const& plan) : plan_(plan) {
  if (!plan.refusal.empty()) throw Error(ErrorCode::bad_request, "fused training: " + plan.refusal);
  launch_ = std::make_unique<Launch>(plan);
  blocks_ = plan::fused_blocks(plan, launch_->resident);
  if (blocks_ < 1)
    throw Error(ErrorCode::bad_request, "fused training: a block of " + std::to_string(plan.network.threads) +
                                            " threads does not fit on a multiprocessor");
  FusedLayout const layout = layout_of(plan.network);
  Index const pitch = (plan.batch + fused_pitch - 1) / fused_pitch * fused_pitch;
  saved_ = zeros(plan.device, pitch * layout.saved_rows);
  sums_ = zeros(plan.device, Index{blocks_} * layout.all_sums);
  image_losses_ = zeros(plan.device, plan.batch);
  counter_ = zeros(plan.device, 1);
}

FusedTraining::~FusedTraining() = default;

Delivery* FusedTraining::inbox(int members, Index parameters) {
  constexpr Index unit = 64, floats = sizeof(Delivery) / sizeof(float);
  team_.members = members;
  team_.parameters = static_cast<int>(parameters);
  team_.pitch = static_cast<int>(parameters / unit * unit + unit);  // the loss follows the parameters
  inbox_ = zeros(plan_.device, floats * 2 * members * team_.pitch);
  return static_cast<Delivery*>(inbox_.data());
}

void FusedTraining::join(std::vector<Delivery*> const& inboxes, int own) {
  team_.member = own;
  std::copy(inboxes.begin(), inboxes.end(), team_.inbox);
}

void FusedTraining::run(FusedTrainingArguments arguments, Stream stream) {
  auto const number = [](double value) { return static_cast<float>(value); };
  OptimizerProblem const& optimizer = plan_.optimizer;
  arguments.size = static_cast<int>(plan_.batch);
  if (arguments.total == 0) arguments.total = arguments.size;
  arguments.team = team_;
  team_.step += static_cast<unsigned>(arguments.steps);
  arguments.momentum = number(optimizer.momentum);
  arguments.weight_decay = number(optimizer.weight_decay);
  arguments.beta1 = number(optimizer.beta1);
  arguments.beta2 = number(optimizer.beta2);
  arguments.rest1 = number(1 - optimizer.beta1);
  arguments.rest2 = number(1 - optimizer.beta2);
  arguments.epsilon = number(optimizer.epsilon);
  arguments.saved = static_cast<float*>(saved_.data());
  arguments.pitch = static_cast<int>((plan_.batch + fused_pitch - 1) / fused_pitch * fused_pitch);
  arguments.sums = static_cast<float*>(sums_.data());
  arguments.image_losses = static_cast<float*>(image_losses_.data());
  arguments.counter = static_cast<unsigned*>(counter_.data());
  (*launch_)(blocks_, arguments, stream);
}

void FusedTraining::score(FusedTrainingArguments arguments, Index count, float* scores, Stream stream) {
  arguments.size = static_cast<int>(count);
  arguments.steps = 1;
  arguments.scores = scores;
  (*launch_)(blocks_, arguments, stream);
}

}  // namespace cosmati
