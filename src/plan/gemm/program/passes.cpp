// Launches over operands before a product.
#include "src/plan/gemm/program/passes.h"

#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/repack.h"

namespace cosmati::plan {

std::size_t add_kernel(program::Program& program, program::KernelSpec kernel) {
  program.kernels.push_back(std::move(kernel));
  return program.kernels.size() - 1;
}

KernelOperand widened(program::Program& program, KernelOperand from, TensorDescription const& tensor,
                      DataType to, char const* slot) {
  if (tensor.type == to) return from;
  Index const count = tensor.layout.span();
  auto const bytes = static_cast<std::size_t>(emulator::padded_bytes(count * size_of(to)));
  auto const offset =
      static_cast<std::size_t>(emulator::padded_bytes(static_cast<Index>(program.workspace.bytes)));
  KernelOperand const copy{from.tensor, program.workspace.add(slot, offset, bytes), true};
  program.steps.push_back(program::launch_of<WidenParameters>(
      add_kernel(program, {.entry = "widen_kernel", .traits = "all types"}), {},
      [from, copy, to, count, type = tensor.type](program::Run const& run, WidenParameters& parameters) {
        parameters = {from.of(run), copy.of(run), type, to, count};
      }));
  return copy;
}

KernelOperand repacked(program::Program& program, KernelOperand from, MatrixForm const& operand,
                       RepackRecipe const& repack, Index outer, Index depth, Index batch, char const* slot,
                       bool emulated) {
  if (repack.bytes == 0) return from;
  std::size_t const kernel = add_kernel(program, repacking_kernel(operand, repack, emulated));
  KernelOperand const copy{from.tensor, program.workspace.add(slot, repack.offset, repack.bytes), true};
  launch_batch<RepackParameters>(program, kernel, {repack_tiles(operand, repack, outer, depth), 1, batch},
                                 [=](program::Run const& run, Index first, RepackParameters& to) {
                                   to = repack_parameters(operand, repack, outer, depth, from.of(run),
                                                          run.workspace);
                                   to.first_batch = first;
                                 });
  return copy;
}

}  // namespace cosmati::plan
