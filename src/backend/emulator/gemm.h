// The GEMM kernels on the emulator: those of a small catalogue, with the expression of the epilogue evaluated
// by the reference.
#pragma once
#include <memory>

#include "cosmati/ops/gemm.h"

namespace cosmati::emulator {

// Bytes that operands of types outside the catalogue need in the workspace: they are widened before the
// launch.
std::size_t widening_bytes(GemmProblem const& problem, Multiply multiply);

std::unique_ptr<Kernel<GemmProblem>> prepare_gemm(Plan<GemmProblem> const& plan);

// There is a kernel with stream-K: of bf16 by wgmma, and of f32, or what is widened to it, by cp.async.
bool has_stream_k(GemmProblem const& problem, MainLoop main_loop, Multiply multiply);

}  // namespace cosmati::emulator
