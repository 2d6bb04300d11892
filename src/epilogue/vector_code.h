// The contents of a VectorProgram: instructions on lanes, and the function that runs them at an
// instruction-set level.
#pragma once
#include <vector>

#include "cosmati/epilogue/vector_program.h"

namespace cosmati::epilogue::detail {

// Loops run over a multiple of this many elements; the rest of a run is padded.
inline constexpr int lane_width = 16;

// One operation; the inputs are numbers of values: accumulator, source, scalars, operands, constants, then
// the result of each instruction. Op::multiply with a third input adds it to the product. Clamp and the
// comparisons > and >= do not occur.
struct Instruction {
  Op op = Op::add;
  int input[3] = {-1, -1, -1};
  int target = 0;  // the register of the result; -1 if it is the result of the run
};

// The location of a value: `width` elements or, if uniform, lane_width equal ones.
template <class Real>
struct Lane {
  Real const* data;
  bool uniform;
};

// Runs one instruction on `width` elements, a multiple of lane_width. Unless all its lanes are uniform,
// uniform ones apply to any width. `target` may be the data of an input.
template <class Real>
using Execute = void (*)(Instruction const& instruction, Lane<Real> const* values, Real* target, int width);

template <class Real>
Execute<Real> execute_at(VectorLevel level);

template <class Real>
struct VectorCode {
  static constexpr int block = 1024 / static_cast<int>(sizeof(Real));  // elements per register

  std::vector<Instruction> instructions;
  std::vector<Real> constants;  // each repeated lane_width times
  int first_scalar = 2;
  int first_operand = 0;
  int first_constant = 0;
  int first_result = 0;
  int registers = 0;
  int result = 0;           // number of a value
  std::vector<int> stores;  // numbers of values
  bool uses_accumulator = false;
  bool uses_source = false;
  bool direct = false;  // the last instruction writes the result of the run
  Execute<Real> execute = nullptr;

  int value_count() const { return first_result + static_cast<int>(instructions.size()); }
};

}  // namespace cosmati::epilogue::detail
