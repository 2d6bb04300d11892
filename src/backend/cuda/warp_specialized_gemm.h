// The launch of a warp-specialised GEMM kernel: tensor maps in its parameters, persistent clusters.
#pragma once
#include <memory>

#include "cosmati/ops/gemm.h"
#include "src/backend/cuda/driver/module.h"

namespace cosmati::cuda {

std::unique_ptr<Kernel<GemmProblem>> warp_specialized_gemm(Plan<GemmProblem> const& plan, Function function);

}  // namespace cosmati::cuda
