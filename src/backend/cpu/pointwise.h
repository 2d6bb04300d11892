// An expression at every element of tensors of any type and strides, on several threads.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cosmati/ops/epilogue.h"

namespace cosmati::cpu {

// result = expression(acc, c, operands...), evaluated in float or double. All layouts have the shape of the
// result; a stride of 0 repeats. The result may be in place of an input of the same type and strides.
struct PointwiseProblem {
  epilogue::Expression expression;
  bool in_double = false;
  TensorDescription accumulator;
  TensorDescription source;  // absent unless the expression uses c
  std::vector<TensorDescription> operands;
  std::vector<TensorDescription> stores;
  TensorDescription result;
};

struct PointwiseArguments {
  void const* accumulator = nullptr;
  void const* source = nullptr;
  std::span<void const* const> operands;
  std::span<double const> scalars;
  void* result = nullptr;
  std::span<void* const> stores;
};

// Immutable; run() allocates nothing and may be called concurrently, each call with its own workspace.
class Pointwise {
 public:
  Pointwise(PointwiseProblem const& problem, int threads);
  ~Pointwise();
  Pointwise(Pointwise&&) noexcept;
  std::size_t workspace_bytes() const;
  void run(PointwiseArguments const& arguments, std::byte* workspace) const;

  class Implementation;

 private:
  std::unique_ptr<Implementation const> implementation_;
};

// Returns the layout of operand `i` of an epilogue in the shape of the result, whose dimensions have the
// names `indices` (epilogue::gemm_indices or convolution_indices).
Layout spread_operand(Epilogue const& epilogue, std::size_t i, Shape const& shape,
                      std::span<std::string_view const> indices);

// The epilogue of a product, with operands broadcast to the shape of the result.
PointwiseProblem epilogue_pointwise(Epilogue const& epilogue, std::span<std::string_view const> indices,
                                    TensorDescription const& accumulator, TensorDescription const& source,
                                    TensorDescription const& result, bool in_double);

// True if the result is the accumulator itself.
bool is_plain(Epilogue const& epilogue);

}  // namespace cosmati::cpu
