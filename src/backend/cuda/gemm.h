// The GEMM kernels on a GPU: composed as text, compiled or found in the cache, launched.
#pragma once
#include <memory>

#include "cosmati/ops/gemm.h"

namespace cosmati::cuda {

std::unique_ptr<Kernel<GemmProblem>> prepare_gemm(Plan<GemmProblem> const& plan);

}  // namespace cosmati::cuda
