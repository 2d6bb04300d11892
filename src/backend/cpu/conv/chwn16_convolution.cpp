// Convolution of batches of 16 images stored innermost, by the kernels in chwn/.
#include <algorithm>
#include <memory>
#include <string>

#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/conv/chwn16_rules.h"
#include "src/backend/cpu/runtime/cache.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

using Problem = ConvolutionProblem;
using epilogue::Op;

constexpr Index products_of_part = 1 << 14;  // per thread, for 16 images: takes several microseconds;
                                             // starting a thread team takes about one
constexpr Index sums_of_part = 1 << 15;

// relu(acc + bias[k]) and its parts; operand 0 is the bias.
struct Tail {
  bool legal = false;
  bool bias = false;
  bool relu = false;
};

Tail tail_of(Epilogue const& epilogue) {
  auto const& expression = epilogue.expression;
  auto const& nodes = expression.nodes();
  if (!expression.stores().empty()) return {};
  Tail tail;
  epilogue::Node const* node = &nodes[static_cast<std::size_t>(expression.result())];
  auto const operand = [&](int i) {
    return &nodes[static_cast<std::size_t>(node->operand[static_cast<std::size_t>(i)])];
  };
  if (node->op == Op::relu) {
    tail.relu = true;
    node = operand(0);
  }
  if (node->op == Op::add) {
    tail.bias = true;
    if (operand(0)->op != Op::operand && operand(1)->op != Op::operand) return {};
    node = operand(0)->op == Op::operand ? operand(1) : operand(0);
    if (expression.operands()[0].indices != std::vector<std::string>{"k"}) return {};
  }
  tail.legal = node->op == Op::accumulator;
  return tail;
}

std::string violates_device(Problem const&, Device const& device) { return violates_isa(device); }

std::string violates_direction(Problem const& p, Device const&) {
  return p.direction == ConvolutionDirection::bias
             ? "the direction is bias; it must be forward, data or filter"
             : "";
}

std::string violates_types(Problem const& p, Device const&) {
  std::string violation;
  Problem::visit_tensors(p, [&](char const* name, Role, TensorDescription const& tensor, auto) {
    if (violation.empty()) violation = violates_type(name, tensor, DataType::f32);
  });
  return violation;
}

std::string violates_layouts(Problem const& p, Device const&) {
  std::string violation;
  Problem::visit_tensors(p, [&](char const* name, Role, TensorDescription const& tensor, auto) {
    if (!violation.empty() || &tensor == &p.w) return;  // w may have any layout: it is small and is reordered
    violation = tensor.layout.rank() == 4 ? violates_chwn16(name, tensor) : violates_row_major(name, tensor);
  });
  return violation;
}

std::string violates_epilogue(Problem const& p, Device const&) {
  Tail const tail = tail_of(p.epilogue);
  std::string const text = "the epilogue is " + p.epilogue.expression.text();
  if (p.direction != ConvolutionDirection::forward)
    return tail.legal && !tail.bias && !tail.relu ? "" : text + "; the data gradient's must be acc";
  if (!tail.legal) return text + "; it must be acc, acc + bias[k], relu(acc) or relu(acc + bias[k])";
  if (!tail.bias) return {};
  char const* name = p.epilogue.expression.operands()[0].name.c_str();
  std::string const violation = violates_type(name, p.epilogue.operands[0], DataType::f32);
  return violation.empty() ? violates_row_major(name, p.epilogue.operands[0]) : violation;
}

chwn::Axis axis_of(Problem const& p, int i) {
  return {p.x.extent(2 + i), p.y.extent(2 + i), p.w.extent(2 + i), p.stride[i],
          p.dilation[i],     p.pad_begin[i],    p.pad_end[i]};
}

int parts_of(Problem const& p, Device const& device) {
  Index const products = p.w.layout.size() * p.y.extent(2) * p.y.extent(3);
  return chwn_parts(products, products_of_part, device);
}

// The number of floats in one part's partial sums: dw, then db.
Index slice_of(Problem const& p) {
  Index const floats = p.w.layout.size() + (p.db.present() ? p.db.extent(0) : 0);
  return (floats + 15) / 16 * 16;
}

// The size in floats of the reordered copy of the weights; 0 if they are already in the kernels' order. CRSK,
// stored next to CHWN images, needs the copy.
Index reordered_of(Problem const& p) {
  return p.w.layout.is_row_major() ? 0 : (p.w.layout.size() + 15) / 16 * 16;
}

std::size_t workspace_bytes(Problem const& p, Device const& device) {
  int const parts = parts_of(p, device);
  bool const in_parts = p.direction == ConvolutionDirection::filter && parts > 1;
  return static_cast<std::size_t>(reordered_of(p) + (in_parts ? slice_of(p) * parts : 0)) * sizeof(float);
}

// Three eighths of the L2 cache, limited to the largest size that was measured.
Index chunk_floats(Device const& device) {
  return std::min<Index>(second_cache_bytes(device) * 3 / 8 / Index{sizeof(float)}, 96 * 1024);
}

class Chwn16Convolution final : public HostKernel<Problem> {
 public:
  Chwn16Convolution(Problem const& p, Device const& device)
      : kernels_(chwn_kernels(device)),
        shape_{p.x.extent(1), p.y.extent(1), p.groups, axis_of(p, 0), axis_of(p, 1), chunk_floats(device)},
        direction_(p.direction),
        sums_dy_(p.db.present()),
        tail_(tail_of(p.epilogue)),
        parts_(parts_of(p, device)),
        weights_(p.w.layout.size()),
        reordered_(reordered_of(p)),
        layout_(p.w.layout),
        slice_(slice_of(p)),
        reduce_parts_(chwn_parts(slice_ * parts_, sums_of_part, device)) {}

  void run(Problem::Arguments const& arguments, std::byte* workspace) const override {
    auto const* x = static_cast<float const*>(arguments.x);
    auto const* w = static_cast<float const*>(arguments.w);
    auto const* dy = static_cast<float const*>(arguments.dy);
    auto* const reordered = reinterpret_cast<float*>(workspace);
    if (reordered_ > 0 && direction_ != ConvolutionDirection::filter) {
      for (Index i = 0; i < weights_; ++i) reordered[i] = w[layout_.offset_of_linear(i)];
      w = reordered;
    }
    if (direction_ == ConvolutionDirection::forward) {
      auto const* bias = tail_.bias ? static_cast<float const*>(arguments.operands[0]) : nullptr;
      auto* const y = static_cast<float*>(arguments.y);
      parallel_parts(parts_, [&](int part, int parts) {
        kernels_.convolve(shape_, x, w, bias, tail_.relu, y, {part, parts});
      });
    } else if (direction_ == ConvolutionDirection::data) {
      auto* const dx = static_cast<float*>(arguments.dx);
      parallel_parts(parts_, [&](int part, int parts) {
        kernels_.convolve_data(shape_, dy, w, dx, {part, parts});
      });
    } else {
      auto* const dw = static_cast<float*>(arguments.dw);
      auto* const db = sums_dy_ ? static_cast<float*>(arguments.db) : nullptr;
      filter(x, dy, reordered_ > 0 ? reordered : dw, db, reordered + reordered_);
      for (Index i = 0; i < weights_ && reordered_ > 0; ++i) dw[layout_.offset_of_linear(i)] = reordered[i];
    }
  }

 private:
  // Each part sums its own rows of the images; the parts are added in a fixed order, so results are bitwise
  // reproducible for a given number of threads.
  void filter(float const* x, float const* dy, float* dw, float* db, float* sums) const {
    if (parts_ == 1) {
      kernels_.convolve_filter(shape_, x, dy, dw, db, {0, 1});
      return;
    }
    parallel_parts(parts_, [&](int part, int parts) {
      float* const mine = sums + part * slice_;
      kernels_.convolve_filter(shape_, x, dy, mine, db ? mine + weights_ : nullptr, {part, parts});
    });
    parallel_parts(reduce_parts_, [&](int part, int parts) {
      reduce(sums, dw, share(weights_, part, parts, 16));
      if (db) reduce(sums + weights_, db, share(shape_.out_channels, part, parts, 16));
    });
  }

  void reduce(float const* sums, float* total, Range range) const {
    for (Index i = range.first; i < range.last; ++i) total[i] = sums[i] + sums[slice_ + i];
    for (int part = 2; part < parts_; ++part)
      for (Index i = range.first; i < range.last; ++i) total[i] += sums[part * slice_ + i];
  }

  chwn::Kernels const& kernels_;
  chwn::Convolution shape_;
  ConvolutionDirection direction_;
  bool sums_dy_;
  Tail tail_;
  int parts_;
  Index weights_, reordered_;
  Layout layout_;  // of the weights
  Index slice_;
  int reduce_parts_;
};

}  // namespace

Candidate<Problem> chwn16_convolution_candidate() {
  return {
      "chwn16",
      {{violates_direction}, {violates_device}, {violates_types}, {violates_layouts}, {violates_epilogue}},
      workspace_bytes,
      [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
        return std::make_unique<Chwn16Convolution>(plan.problem, plan.device);
      }};
}

}  // namespace cosmati::cpu
