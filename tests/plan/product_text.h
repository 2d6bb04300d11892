// The text of the kernel that computes a product.
#pragma once
#include <string>

#include "src/plan/gemm/program/program.h"

namespace cosmati::testing {

inline std::string main_text(Plan<GemmProblem> const& plan) {
  program::Program const program = plan::program_of(plan);
  return program::text_of(program.kernels[program.main]);
}

}  // namespace cosmati::testing
