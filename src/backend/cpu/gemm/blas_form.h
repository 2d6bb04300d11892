// Problems that a single BLAS call computes: d = alpha * a * b + beta * c with contiguous rows or columns.
#pragma once
#include <span>
#include <string>

#include "cosmati/ops/gemm.h"

namespace cosmati::cpu {

// A constant, or a scalar of the problem.
struct Factor {
  double constant = 1;
  int scalar = -1;
  double value(std::span<double const> scalars) const {
    return scalar < 0 ? constant : scalars[static_cast<std::size_t>(scalar)];
  }
};

struct BlasForm {
  Factor alpha;
  Factor beta{0, -1};
};

// Reads alpha*acc + beta*c, with the terms in either order and the second optional; false for other
// expressions.
bool read_blas_form(epilogue::Expression const& expression, BlasForm& form);
std::string violates_blas_form(GemmProblem const& problem, Device const& device);

// A matrix (batch, rows, columns) in BLAS terms, row-major: N as stored, T transposed.
struct BlasOperand {
  char letter = 'N';
  Index leading = 1;
};
inline char flipped(char letter) { return letter == 'N' ? 'T' : 'N'; }

// False if neither rows nor columns are contiguous, or they overlap.
bool read_blas_operand(TensorDescription const& matrix, BlasOperand& operand);
std::string violates_blas_strides(GemmProblem const& problem, Device const& device);

}  // namespace cosmati::cpu
