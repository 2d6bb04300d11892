// Operand sets in device memory.
#include "cli/data/gpu_operands.h"

#include <algorithm>

#include "cli/data/random_data.h"
#include "cli/operations/subject.h"
#include "cli/options/placement.h"

namespace cosmati::cli {
namespace {

constexpr Index max_drawn = Index{1} << 18;

}  // namespace

long long sets_needed(long long bytes, long long l2_bytes, bool hot) {
  if (hot || bytes == 0) return 1;
  return std::clamp<long long>((2 * l2_bytes + bytes - 1) / bytes, 1, 256);
}

GpuOperands::GpuOperands(Task& task, Device const& device, long long sets, Index misalignment,
                         nets::Random& random)
    : ordinal_(device.gpu.ordinal), slots_(task.slots()) {
  for (long long i = 0; i < sets; ++i) {
    Set set;
    for (Slot const& slot : slots_) {
      Index const offset = offset_of(slot.description, misalignment);
      set.buffers.emplace_back(ordinal_, static_cast<std::size_t>(offset + slot.description.bytes()));
      set.pointers.push_back(static_cast<std::byte*>(set.buffers.back().data()) + offset);
    }
    sets_.push_back(std::move(set));
  }
  fill_inputs(task.notes.classes, random);
  for (std::size_t i = 0; i < sets_.size(); ++i) poison_outputs(i);
  cuda::wait(ordinal_, nullptr);
}

void GpuOperands::fill_inputs(Index classes, nets::Random& random) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    TensorDescription const& description = slots_[i].description;
    Index const size = description.layout.span();
    if (slots_[i].role == Role::output || size == 0) continue;
    Index const element = size_of(description.type);
    Tensor drawn(description.type, Shape(std::min(size, max_drawn)));
    fill_random(drawn, slots_[i].name, {false, classes}, random);
    cuda::DeviceBuffer const pool(ordinal_, drawn.bytes());
    cuda::copy_to_device(ordinal_, pool.data(), drawn.data(), drawn.bytes(), nullptr);
    for (Set const& set : sets_)
      for (Index at = 0; at < size;) {
        Index const start = size <= drawn.size() ? 0 : draw_between(random, 0, drawn.size() / 2);
        Index const count = std::min(drawn.size() - start, size - at);
        cuda::copy_on_device(ordinal_, static_cast<std::byte*>(set.pointers[i]) + at * element,
                             static_cast<std::byte const*>(pool.data()) + start * element,
                             static_cast<std::size_t>(count * element), nullptr);
        at += count;
      }
    cuda::wait(ordinal_, nullptr);
  }
}

void GpuOperands::poison_outputs(std::size_t set) const {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].role == Role::output)
      cuda::fill(ordinal_, sets_[set].pointers[i], 0xff,
                 static_cast<std::size_t>(slots_[i].description.bytes()), nullptr);
}

std::vector<Tensor> GpuOperands::download(std::size_t set) const {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    tensors.emplace_back(slots_[i].description);
    cuda::copy_to_host(ordinal_, tensors.back().data(), sets_[set].pointers[i], tensors.back().bytes(),
                       nullptr);
  }
  cuda::wait(ordinal_, nullptr);
  return tensors;
}

}  // namespace cosmati::cli
