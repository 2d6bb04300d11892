// Kernels that multiply the windows of a tensor directly, or written out as a matrix.
#pragma once
#include <string>

#include "cosmati/gemm/policy.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct WindowSourceTraits {
  DataType type = DataType::f32;
  Along along = Along::k;
  int width = 1;
  bool stepwise = false, windowed = true;
  std::string print() const;
};
struct ProductTraits {
  GemmPolicy policy;
  WindowSourceTraits a, b;
  DataType sum = DataType::f32;
  std::string epilogue, destination;
  std::string print() const;
};
struct DirectTraits {
  KernelTypes types;  // of a, b and the sums
  std::string print() const;
};

// The programs of direct, implicit_gemm and unroll_gemm.
program::Program product_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
