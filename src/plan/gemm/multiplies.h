// Which multiplies of the tiled main loops, multistage and double_buffered, support a product.
#pragma once
#include <string>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

// The reason why multiplication by single threads is unsuitable in the multistage main loop; empty if it is
// suitable.
std::string copies_violation(CanonicalGemm const& form);

// The reason why tensor cores do not support the problem by mma.sync; empty if they do.
std::string mma_violation(CanonicalGemm const& form, Gpu const& gpu);

// The reason why WMMA, which supports both majors, does not support the problem; empty if it does.
std::string wmma_violation(CanonicalGemm const& form, Gpu const& gpu);

}  // namespace cosmati::plan
