// General matrix product: d = epilogue(a * b, c, ...).
#pragma once
#include <optional>
#include <span>

#include "cosmati/ops/compute_mode.h"
#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/gemm_recipe.h"
#include "cosmati/ops/operation.h"

namespace cosmati {

// d[i, m, n] = epilogue(sum over k of a[i, m, k] * b[i, k, n], c[i, m, n], ...) for each batch i. Strides are
// arbitrary: NN, NT, TN and TT, any leading dimension, a batch stride of 0 for a shared operand. The sum is
// accumulated in f32; in f64 if an input is f64; in s32 if both are integers; in f16 only on request, and a
// backend may use a wider type. NaN and infinities: docs/nonfinite.md.
struct GemmProblem {
  TensorDescription a;  // (batch, m, k)
  TensorDescription b;  // (batch, k, n)
  TensorDescription c;  // (batch, m, n); absent unless the epilogue uses c
  TensorDescription d;  // (batch, m, n)
  Epilogue epilogue;    // default: acc
  // The type of the sums: accumulator_type(), or f16 on request for f16 factors.
  std::optional<DataType> accumulator = {};
  // a, b, c and d of Arguments are arrays of batch() pointers, one per matrix (on cuda: arrays in device
  // memory), each with the alignment of the description; their batch strides are ignored.
  bool by_pointers = false;
  // Permits products of bf16 or tf32 pieces of f32 factors; other factors are multiplied exactly.
  ComputeMode compute = ComputeMode::exact;

  struct Arguments {
    void const* a = nullptr;
    void const* b = nullptr;
    void const* c = nullptr;
    void* d = nullptr;
    std::span<void const* const> operands = {};  // by index of epilogue.expression.operands()
    std::span<double const> scalars = {};        // by index of epilogue.expression.scalars()
    std::span<void* const> stores = {};          // by index of epilogue.expression.stores()
  };

  Index batch() const { return d.extent(0); }
  Index m() const { return d.extent(1); }
  Index n() const { return d.extent(2); }
  Index k() const { return a.extent(2); }

  template <class Self, class Visit>
  static void visit_tensors(Self& problem, Visit&& visit) {
    visit("a", Role::input, problem.a, &Arguments::a);
    visit("b", Role::input, problem.b, &Arguments::b);
    if (problem.c.present()) visit("c", Role::input, problem.c, &Arguments::c);
    visit("d", Role::output, problem.d, &Arguments::d);
  }
};

template <>
struct RecipeOf<GemmProblem> {
  using type = GemmRecipe;
};

// Returns the problem of a single matrix of a by_pointers problem.
GemmProblem matrix_of_batch(GemmProblem const& problem);
// The arguments of one matrix of such a problem.
struct MatrixOfBatch {
  MatrixOfBatch(GemmProblem const& problem, GemmProblem::Arguments const& arguments, Index matrix);
  GemmProblem::Arguments arguments;  // refers to the arrays below
  void const* operands[max_epilogue_operands];
  void* stores[max_epilogue_stores];
};

// Any extent may be 0: if M, N or the batch is 0, nothing is computed; if K is 0, acc is 0.
void validate(GemmProblem const& problem);  // throws Error(bad_request)

// Returns the type in which products of a and b are accumulated and the epilogue is evaluated.
DataType accumulator_type(DataType a, DataType b);

}  // namespace cosmati
