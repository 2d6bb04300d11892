// Shared preparation of operations for one device, their workspace and their stream.
#pragma once
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/memory.h"
#include "cosmati/ops/operation.h"
#include "nets/dcgan/architecture.h"

namespace cosmati::dcgan {

// The data types of a training. f32; tf32: the same tensors, with factors rounded to TF32 in matrix products
// and convolutions; bf16: images and activations between convolutions and copies of the filters are bf16;
// weights, their gradients, statistics and losses stay f32.
struct Precision {
  DataType compute = DataType::f32;
  DataType stored() const { return compute == DataType::bf16 ? DataType::bf16 : DataType::f32; }
  // Returns `description` as a factor of a product.
  TensorDescription factor(TensorDescription description) const {
    if (compute == DataType::tf32 && description.type == DataType::f32) description.type = DataType::tf32;
    return description;
  }
};

class Workbench {
 public:
  // The operations are enqueued on `stream`.
  Workbench(Device const& device, Precision precision, Stream stream)
      : device_(device), precision_(precision), stream_(stream) {}
  // Plans immediately; `target`, which must not move, is prepared by finish().
  template <class Problem>
  void make(Prepared<Problem>& target, Problem const& problem) {
    auto plan = make_plan(problem, device_);
    bytes_ = std::max(bytes_, plan.workspace_bytes);
    preparations_.push_back([&target, plan = std::move(plan)] { target = cosmati::prepare(plan); });
  }
  DeviceMemory memory(TensorDescription const& description) const {
    return {device_, static_cast<std::size_t>(description.bytes())};
  }
  // Call after the last make(): prepares the operations, compiling kernels on all threads, and allocates the
  // workspace.
  void finish();
  template <class Problem>
  void run(Prepared<Problem> const& operation, typename Problem::Arguments const& arguments) const {
    operation.run(arguments, workspace_.data(), stream_);
  }
  Stream stream() const { return stream_; }
  // Whether activations are fused into batch normalizations, and their gradients into the gradients of these
  // or into the operations before them. Host backends compute them separately: that is cheap there, in place
  // and in the cache, and our plans for oneDNN fuse neither.
  bool fuses() const { return device_.backend == Backend::cuda || device_.backend == Backend::emulator; }
  Precision precision() const { return precision_; }

 private:
  Device device_;
  Precision precision_;
  Stream stream_;
  std::vector<std::function<void()>> preparations_;
  std::size_t bytes_ = 64;
  DeviceMemory workspace_;
};

// The images between layers: channels last.
inline TensorDescription images_of(DataType type, Index n, Index c, Index size) {
  return describe(type, image_layout(TensorFormat::nhwc, n, c, size, size));
}

// The filter of such a convolution: (k, c, r, s) with k channels of the small images and c of the large ones,
// stored as (r, s, c, k), as in network.bin.
inline TensorDescription filter_of(Index small_channels, Index large_channels, DataType type) {
  return describe(type,
                  row_major({filter_size, filter_size, large_channels, small_channels}).permuted(3, 2, 0, 1));
}

// The 5x5 convolution of stride 2 between `large` images and `small` ones of half their rows and columns, in
// any direction. Padding 1 before and 2 after, since the generator's layers are its data gradient
// (docs/decisions/0003).
inline ConvolutionProblem halving(ConvolutionDirection direction, TensorDescription const& large,
                                  TensorDescription const& filter, TensorDescription const& small) {
  ConvolutionProblem problem;
  problem.direction = direction;
  problem.x = large;
  problem.w = filter;
  problem.y = small;
  for (int d : {0, 1}) {
    problem.stride[d] = 2;
    problem.pad_begin[d] = 1;
    problem.pad_end[d] = 2;
  }
  return problem;
}

}  // namespace cosmati::dcgan
