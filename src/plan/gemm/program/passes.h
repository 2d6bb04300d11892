// Operands of a program's kernels, and the launches that convert or copy them first.
#pragma once
#include <algorithm>

#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::plan {

// An operand as the kernels read it: a tensor of the run, or its copy in the workspace.
struct KernelOperand {
  std::size_t tensor = 0, copy = 0;
  bool is_copied = false;
  void* of(program::Run const& run) const {
    return is_copied ? static_cast<void*>(run.workspace + copy) : run.tensors[tensor];
  }
};

std::size_t add_kernel(program::Program& program, program::KernelSpec kernel);

// Adds launches for a grid whose z is the matrix or group, as many as its limit requires; each calls
// write(run, first, parameters) with its first z.
template <class Parameters, class Write>
void launch_batch(program::Program& program, std::size_t kernel, program::Grid grid, Write const& write,
                  std::size_t bytes = sizeof(Parameters)) {
  constexpr Index maximum = 65535;
  for (Index first = 0; first < grid.z; first += maximum)
    program.steps.push_back(program::launch_of<Parameters>(
        kernel, {grid.x, grid.y, std::min(maximum, grid.z - first)},
        [write, first](program::Run const& run, Parameters& parameters) { write(run, first, parameters); },
        bytes));
}

// Parameters of the emulator's widen_kernel, which converts tensors of types that its kernels do not support.
struct WidenParameters {
  void const* from = nullptr;
  void* to = nullptr;
  DataType from_type = DataType::f32, to_type = DataType::f32;
  Index count = 0;
};
// Converts the operand into memory at the end of the workspace, unless it already has the type.
KernelOperand widened(program::Program& program, KernelOperand from, TensorDescription const& tensor,
                      DataType to, char const* slot);

// Copies the `batch` matrices of `outer` by `depth` elements, if the recipe requires it.
KernelOperand repacked(program::Program& program, KernelOperand from, MatrixForm const& operand,
                       RepackRecipe const& repack, Index outer, Index depth, Index batch, char const* slot,
                       bool emulated);

}  // namespace cosmati::plan
