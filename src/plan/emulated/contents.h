// Which kernels the emulator's catalogue has, and the workspace that they need. Plans ask, with or without
// the module.
#pragma once
#include <string>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/group.h"

namespace cosmati::emulator {

// What operands of other types take in the workspace, where they are converted before the launch.
inline Index padded_bytes(Index bytes) { return (bytes + 63) / 64 * 64; }

struct KernelTypes {
  DataType a, b;
};
// The types of the operands in the kernel: their own if it is in the catalogue, else that of the sums.
KernelTypes kernel_types(DataType a, DataType b, DataType sum, Multiply multiply);
std::size_t widening_bytes(GemmProblem const& problem, Multiply multiply);

// There is a kernel with stream-K: of bf16 by wgmma, and of f32, or what is widened to it, by cp.async.
bool has_stream_k(GemmProblem const& problem, MainLoop main_loop, Multiply multiply);
// There is a kernel by wgmma whose operands are both copied by threads.
bool has_wgmma_by_threads(DataType type, OperandAccess const& a, OperandAccess const& b);

// Empty, or which types and directions there is a kernel for by warp_specialized with batches by pointers.
std::string pointers_violation(plan::CanonicalGemm const& form);

// There is a kernel for groups of products of these types.
bool has_group(GemmRecipe const& recipe, DataType a, DataType b);
// Empty, or which types and directions there is a kernel for groups for.
std::string group_violation(GemmRecipe const& recipe, plan::GroupForm const& group);

// There are tensor-core and SIMT kernels of these types, perhaps for operands that are widened first.
bool multiplies_convolution(MainLoop main_loop, Multiply multiply, DataType a, DataType b);
// There is a kernel by warp_specialized for operands of these types.
bool has_window_product(DataType a, DataType b);
// The type of both operands in a convolution's kernel.
DataType kernel_type(DataType a, DataType b, ConvolutionRecipe const& recipe);
std::size_t widening_bytes(ConvolutionProblem const& problem, ConvolutionRecipe const& recipe);

}  // namespace cosmati::emulator
