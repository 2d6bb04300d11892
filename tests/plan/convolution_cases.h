// Small convolutions, and a comparison of an emulated kernel with the reference.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "src/backend/cuda/executor.h"
#include "src/plan/conv/program.h"

namespace cosmati {

inline Device emulated_device() {
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu("h200");
  return device;
}

// A GPU that need not be present, for plans and the source texts of kernels.
inline Device described_h200() {
  Device device = emulated_device();
  device.backend = Backend::cuda;
  return device;
}
// The reason why `kernel` does not support the problem on that GPU.
inline std::string refusal_of(ConvolutionProblem const& p, std::string const& kernel) {
  return entry_of(make_plan(p, described_h200(), {}).considered, kernel).refusal;
}

struct Geometry {
  Index n = 2, c = 4, k = 6, h = 9, w = 7, r = 3, s = 3;
  Index stride[2] = {1, 1}, pad_begin[2] = {0, 0}, pad_end[2] = {0, 0}, dilation[2] = {1, 1};
  Index groups = 1;
};

inline ConvolutionProblem problem_of(ConvolutionDirection direction, DataType type, DataType result,
                                     TensorFormat format, Geometry const& g) {
  ConvolutionProblem p;
  p.direction = direction;
  p.groups = g.groups;
  Index const in[2] = {g.h, g.w}, filter[2] = {g.r, g.s};
  Index out[2];
  for (int i = 0; i < 2; ++i) {
    p.stride[i] = g.stride[i];
    p.pad_begin[i] = g.pad_begin[i];
    p.pad_end[i] = g.pad_end[i];
    p.dilation[i] = g.dilation[i];
    out[i] = convolution_extent(in[i], filter[i], g.stride[i], g.pad_begin[i], g.pad_end[i], g.dilation[i]);
  }
  auto const of = [&](bool is_result) { return is_result ? result : type; };
  p.x = describe(of(direction == ConvolutionDirection::data), image_layout(format, g.n, g.c, g.h, g.w));
  p.w = describe(of(direction == ConvolutionDirection::filter),
                 image_layout(format, g.k, g.c / g.groups, g.r, g.s));
  p.y = describe(of(direction == ConvolutionDirection::forward),
                 image_layout(format, g.n, g.k, out[0], out[1]));
  return p;
}

// Small integers: every sum is exact in every type.
inline Tensor filled(TensorDescription const& description, Index seed) {
  Tensor tensor(description);
  for (Index i = 0; i < tensor.layout().span(); ++i)
    store(description.type, tensor.data(), i, static_cast<double>((i * 7 + seed) % 5 % 3));
  return tensor;
}

struct Computed {
  Tensor result;
  std::string recipe;
};
inline Computed run(ConvolutionProblem const& p, Device const& device, std::string const& kernel,
                    std::string const& policy, std::size_t max_workspace = ~std::size_t{0}) {
  PlanOptions options;
  options.max_workspace = max_workspace;
  options.kernel = kernel;
  options.policy = policy;
  auto const plan = make_plan(p, device, options);
  auto const prepared = prepare(plan);
  Tensor const x = filled(p.x, 1), w = filled(p.w, 2), y = filled(p.y, 3);
  bool const forward = p.direction == ConvolutionDirection::forward,
             data = p.direction == ConvolutionDirection::data;
  Computed made{filled(forward ? p.y : data ? p.x : p.w, 9), {}};
  made.recipe = plan.chosen().recipe;
  ConvolutionProblem::Arguments arguments;
  arguments.x = x.data(), arguments.w = w.data(), arguments.dy = y.data();
  (forward ? arguments.y : data ? arguments.dx : arguments.dw) = made.result.data();
  std::vector<Tensor> operands;
  std::vector<void const*> pointers;
  for (TensorDescription const& operand : p.epilogue.operands) operands.push_back(filled(operand, 4));
  for (Tensor const& operand : operands) pointers.push_back(operand.data());
  arguments.operands = pointers;
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  prepared.run(arguments, workspace.data());
  return made;
}

inline ConvolutionProblem with_forward_epilogue(ConvolutionProblem p) {
  p.epilogue.expression =
      epilogue::parse("relu(acc + bias[k] - rest[n, k, p, q])", epilogue::convolution_indices);
  p.epilogue.operands = {describe(DataType::f32, {p.y.extent(1)}), p.y};
  return p;
}

inline void expect_right(ConvolutionProblem const& p, std::string const& kernel = "implicit_gemm",
                         std::string const& policy = "", std::size_t max_workspace = ~std::size_t{0}) {
  Computed const ours = run(p, emulated_device(), kernel, policy, max_workspace);
  Computed const expected = run(p, this_device(Backend::reference), "", "");
  for (Index i = 0; i < ours.result.layout().span(); ++i)
    ASSERT_EQ(load(ours.result.type(), ours.result.data(), i),
              load(ours.result.type(), expected.result.data(), i))
        << kernel << ' ' << ours.recipe << ", direction " << static_cast<int>(p.direction) << ", element "
        << i;
}

// The sources of a plan for the backend cuda: that of the main kernel, and the others.
inline jit::Source main_source(Plan<ConvolutionProblem> const& plan) {
  return cuda::kernel_sources(plan::program_of(plan), plan.device.gpu).front();
}
inline std::vector<jit::Source> passes_of(Plan<ConvolutionProblem> const& plan) {
  std::vector<jit::Source> sources = cuda::kernel_sources(plan::program_of(plan), plan.device.gpu);
  sources.erase(sources.begin());
  return sources;
}

inline constexpr ConvolutionDirection directions[] = {
    ConvolutionDirection::forward, ConvolutionDirection::data, ConvolutionDirection::filter};
inline constexpr TensorFormat formats[] = {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn};

inline std::vector<Geometry> geometries() {
  Geometry strided, grouped, wide, dilated;
  strided.stride[0] = 2, strided.stride[1] = 3, strided.pad_begin[0] = 1, strided.pad_end[1] = 2;
  grouped.groups = 2, grouped.c = 8, grouped.k = 4, grouped.n = 8;
  wide.c = 32, wide.k = 64, wide.r = 2, wide.s = 2, wide.h = 5, wide.w = 6, wide.pad_begin[1] = 1;
  dilated.dilation[0] = 2, dilated.stride[0] = 2, dilated.stride[1] = 4, dilated.s = 2, dilated.n = 1;
  return {strided, grouped, wide, dilated};
}

}  // namespace cosmati
