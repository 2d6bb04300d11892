// Pooling of batches of 16 images stored innermost, by the kernels in chwn/.
#include <memory>
#include <string>

#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/conv/chwn16_rules.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

constexpr Index taps_of_part = 1 << 13;  // per thread, for 16 images: takes several microseconds; starting a
                                         // thread team takes about one

std::string violates_device(PoolingProblem const&, Device const& device) { return violates_isa(device); }

std::string violates_types(PoolingProblem const& p, Device const&) {
  std::string violation;
  PoolingProblem::visit_tensors(p, [&](char const* name, Role, TensorDescription const& tensor, auto) {
    if (violation.empty() && &tensor != &p.indices) violation = violates_type(name, tensor, DataType::f32);
  });
  return violation;
}

std::string violates_layouts(PoolingProblem const& p, Device const&) {
  std::string violation;
  PoolingProblem::visit_tensors(p, [&](char const* name, Role, TensorDescription const& tensor, auto) {
    if (violation.empty()) violation = violates_chwn16(name, tensor);
  });
  return violation;
}

bool finds_maxima_first(PoolingProblem const& p) {
  return p.direction == Direction::backward && p.backward_needs_x();
}

std::string violates_taps(PoolingProblem const& p, Device const&) {
  if (!finds_maxima_first(p) || p.window[0] <= 255 / p.window[1]) return {};
  return "the window has " + std::to_string(p.window[0]) + " x " + std::to_string(p.window[1]) +
         " taps; at most 255 are supported without indices";
}

chwn::Axis axis_of(PoolingProblem const& p, int i) {
  return {p.x.extent(2 + i), p.y.extent(2 + i), p.window[i], p.stride[i],
          p.dilation[i],     p.pad_begin[i],    p.pad_end[i]};
}

// One byte per result for the tap of its maximum, if the backward pass has to find it.
std::size_t workspace_bytes(PoolingProblem const& p, Device const&) {
  return finds_maxima_first(p) ? static_cast<std::size_t>(p.y.layout.size()) : 0;
}

class Chwn16Pooling final : public HostKernel<PoolingProblem> {
 public:
  Chwn16Pooling(PoolingProblem const& p, Device const& device)
      : kernels_(chwn_kernels(device)),
        shape_{p.x.extent(1), axis_of(p, 0), axis_of(p, 1)},
        forward_(p.direction == Direction::forward),
        finds_maxima_(finds_maxima_first(p)),
        mode_(p.mode),
        has_indices_(p.indices.present()),
        indices_(p.indices.type),
        parts_(
            chwn_parts(p.y.layout.size() / chwn::images * p.window[0] * p.window[1], taps_of_part, device)) {}

  void run(PoolingProblem::Arguments const& arguments, std::byte* workspace) const override {
    auto const* x = static_cast<float const*>(arguments.x);
    auto const* dy = static_cast<float const*>(arguments.dy);
    if (forward_) {
      forward(x, static_cast<float*>(arguments.y), marks<unsigned char, int>(arguments.indices));
      return;
    }
    auto* const dx = static_cast<float*>(arguments.dx);
    if (!finds_maxima_) {
      backward(dy, marks<unsigned char const, int const>(arguments.saved_indices), dx);
      return;
    }
    auto* const taps = reinterpret_cast<unsigned char*>(workspace);
    forward(x, nullptr, {taps, nullptr});
    backward(dy, {taps, nullptr}, dx);
  }

 private:
  template <class Byte, class Integer, class Pointer>
  chwn::Marks<Byte, Integer> marks(Pointer* indices) const {
    if (!has_indices_) return {nullptr, nullptr};
    if (indices_ == DataType::u8) return {static_cast<Byte*>(indices), nullptr};
    return {nullptr, static_cast<Integer*>(indices)};
  }

  void forward(float const* x, float* y, chwn::Marks<unsigned char, int> marks) const {
    parallel_parts(parts_, [&](int part, int parts) {
      if (mode_ == PoolingMode::max)
        kernels_.max_pool(shape_, x, y, marks, {part, parts});
      else
        kernels_.average_pool(shape_, mode_ == PoolingMode::average_with_padding, x, y, {part, parts});
    });
  }

  void backward(float const* dy, chwn::Marks<unsigned char const, int const> marks, float* dx) const {
    parallel_parts(parts_, [&](int part, int parts) {
      if (mode_ == PoolingMode::max)
        kernels_.max_unpool(shape_, dy, marks, dx, {part, parts});
      else
        kernels_.average_unpool(shape_, mode_ == PoolingMode::average_with_padding, dy, dx, {part, parts});
    });
  }

  chwn::Kernels const& kernels_;
  chwn::Pooling shape_;
  bool forward_, finds_maxima_;
  PoolingMode mode_;
  bool has_indices_;
  DataType indices_;
  int parts_;
};

}  // namespace

Candidate<PoolingProblem> chwn16_pooling_candidate() {
  return {"chwn16",
          {{violates_device}, {violates_types}, {violates_layouts}, {violates_taps}},
          workspace_bytes,
          [](Plan<PoolingProblem> const& plan) -> std::unique_ptr<Kernel<PoolingProblem>> {
            return std::make_unique<Chwn16Pooling>(plan.problem, plan.device);
          }};
}

}  // namespace cosmati::cpu
