// Which kernels the emulator's catalogue contains, and the workspace that they need; used by plans with or
// without the module.
#pragma once
#include <string>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/group.h"

namespace cosmati::emulator {

// Rounds up the workspace bytes of an operand of another type, which is converted before the launch.
inline Index padded_bytes(Index bytes) { return (bytes + 63) / 64 * 64; }
// The workspace of `own` bytes and the converted operands, which begin at multiples of 64 bytes.
inline std::size_t with_operands(std::size_t own, std::size_t operands) {
  return operands == 0 ? own : static_cast<std::size_t>(padded_bytes(static_cast<Index>(own))) + operands;
}

struct KernelTypes {
  DataType a, b;
};
// Returns the types of the operands in the kernel: their own if the catalogue contains such a kernel,
// otherwise the type of the sums.
KernelTypes kernel_types(DataType a, DataType b, DataType sum, Multiply multiply);
std::size_t widening_bytes(GemmProblem const& problem, Multiply multiply);

// Whether there is a kernel with stream-K: for bf16 by wgmma, and for f32, or types widened to it, by
// cp.async.
bool has_stream_k(GemmProblem const& problem, MainLoop main_loop, Multiply multiply);
// Whether there are kernels for split-K in parallel: for bf16 by wgmma.
bool has_sum_of_parts(GemmProblem const& problem, Multiply multiply);
// Whether there is a wgmma kernel whose operands are both copied by threads.
bool has_wgmma_by_threads(DataType type, OperandAccess const& a, OperandAccess const& b);

// Returns an empty string if there is a warp_specialized kernel for this batch by pointers, otherwise the
// supported types and majors.
std::string pointers_violation(plan::CanonicalGemm const& form);

// Whether there is a kernel for groups of products of these types.
bool has_group(GemmRecipe const& recipe, DataType a, DataType b);
// Returns an empty string if there is a kernel for this group, otherwise the supported types and majors.
std::string group_violation(GemmRecipe const& recipe, plan::GroupForm const& group);

// Whether there are tensor-core and SIMT kernels for these types, possibly for operands that are widened
// first.
bool multiplies_convolution(MainLoop main_loop, Multiply multiply, DataType a, DataType b);
// Whether there is a warp_specialized convolution kernel for operands of these types.
bool has_window_product(DataType a, DataType b);
// Returns the type of both operands in a convolution's kernel.
DataType kernel_type(DataType a, DataType b, ConvolutionRecipe const& recipe);
std::size_t widening_bytes(ConvolutionProblem const& problem, ConvolutionRecipe const& recipe);

}  // namespace cosmati::emulator
