// Convolution (cross-correlation, as in neural networks), its three gradients, and transposed convolution.
#pragma once
#include <span>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution_recipe.h"
#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/operation.h"

namespace cosmati {

enum class ConvolutionDirection : unsigned char { forward, data, filter, bias };

// With h = p*stride + r*dilation - pad_begin (and likewise for w), c running over the channels of k's group:
//   forward: y[n, k, p, q]  = epilogue(sum over c, r, s of x[n, c, h, w] * w[k, c, r, s])
//   data:    dx[n, c, h, w] = epilogue(sum over k, r, s of dy[n, k, p, q] * w[k, c, r, s])
//   filter:  dw[k, c, r, s] = sum over n, p, q of dy[n, k, p, q] * x[n, c, h, w], and db with it if present
//   bias:    db[k] = sum over n, p, q of dy[n, k, p, q]
// A transposed convolution is the data direction: its input is dy, its output dx. A one-dimensional
// convolution has extents of 1. In an epilogue, name[k] is indexed by the output channel: k of y, c of dx.
// In three dimensions, x is (N, C, D, H, W), w is (K, C / groups, T, R, S) and y is (N, K, O, P, Q), all sums
// also run over t (over o in filter and bias), and d = o*depth.stride + t*depth.dilation - depth.pad_begin.
// NaN: docs/nonfinite.md.
struct ConvolutionProblem {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  TensorDescription x;   // x or dx: (N, C, H, W)
  TensorDescription w;   // w or dw: (K, C / groups, R, S)
  TensorDescription y;   // y or dy: (N, K, P, Q)
  TensorDescription db;  // (K)
  Index stride[2] = {1, 1};
  Index pad_begin[2] = {0, 0};  // top, left
  Index pad_end[2] = {0, 0};    // bottom, right
  Index dilation[2] = {1, 1};
  Index groups = 1;
  Epilogue epilogue;  // for forward and data; default: acc
  // The windows along d; used only in three dimensions.
  struct Depth {
    Index stride = 1;
    Index pad_begin = 0, pad_end = 0;  // front, back
    Index dilation = 1;
  } depth = {};

  bool has_depth() const { return y.layout.rank() == 5; }

  struct Arguments {
    void const* x = nullptr;
    void const* w = nullptr;
    void const* dy = nullptr;
    void* y = nullptr;
    void* dx = nullptr;
    void* dw = nullptr;
    void* db = nullptr;
    std::span<void const* const> operands = {};
    std::span<double const> scalars = {};
    std::span<void* const> stores = {};
  };

  // The tensor that is computed: y, dx, dw or, if the direction is bias, db.
  TensorDescription const& result() const {
    switch (direction) {
      case ConvolutionDirection::forward: return y;
      case ConvolutionDirection::data: return x;
      case ConvolutionDirection::filter: return w;
      case ConvolutionDirection::bias: break;
    }
    return db;
  }

  // Returns a phrase for messages that names the sum over the images; null if each output belongs to one
  // image.
  char const* sums_over_batch() const {
    if (direction == ConvolutionDirection::filter) return "a filter's gradient is a sum";
    return direction == ConvolutionDirection::bias ? "a bias gradient is a sum" : nullptr;
  }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    switch (problem.direction) {
      case ConvolutionDirection::forward:
        visit("x", Role::input, problem.x, &Arguments::x);
        visit("w", Role::input, problem.w, &Arguments::w);
        visit("y", Role::output, problem.y, &Arguments::y);
        return;
      case ConvolutionDirection::data:
        visit("dy", Role::input, problem.y, &Arguments::dy);
        visit("w", Role::input, problem.w, &Arguments::w);
        visit("dx", Role::output, problem.x, &Arguments::dx);
        return;
      case ConvolutionDirection::filter:
        visit("x", Role::input, problem.x, &Arguments::x);
        visit("dy", Role::input, problem.y, &Arguments::dy);
        visit("dw", Role::output, problem.w, &Arguments::dw);
        if (problem.db.present()) visit("db", Role::output, problem.db, &Arguments::db);
        return;
      case ConvolutionDirection::bias:
        visit("dy", Role::input, problem.y, &Arguments::dy);
        visit("db", Role::output, problem.db, &Arguments::db);
        return;
    }
  }
};

template <>
struct RecipeOf<ConvolutionProblem> {
  using type = ConvolutionRecipe;
};

// Extents of N, C and K may be 0 (an empty sum is 0); the filter must have at least one tap and fit into the
// padded image.
void validate(ConvolutionProblem const& problem);  // throws Error(bad_request)

// The index letters of the problem's epilogue: (n, k, p, q), with depth (n, k, o, p, q).
inline constexpr std::string_view volume_indices[] = {"n", "k", "o", "p", "q"};
inline std::span<std::string_view const> epilogue_indices(ConvolutionProblem const& problem) {
  if (problem.has_depth()) return volume_indices;
  return epilogue::convolution_indices;
}

// Returns the extent of a convolution's output: floor((input + pads - dilation*(filter - 1) - 1) / stride) +
// 1, or 0 if the filter does not fit.
Index convolution_extent(Index input, Index filter, Index stride, Index pad_begin, Index pad_end,
                         Index dilation);

}  // namespace cosmati
