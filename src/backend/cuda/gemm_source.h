// How composed kernels are compiled.
#pragma once
#include "src/jit/compile.h"
#include "src/ops/architecture.h"

namespace cosmati::cuda {

// Keeps the compiler from fusing multiplications and additions of an epilogue in batch-invariant plans, since
// it might do so in one kernel and not in another. Sums of products name their instructions.
inline void keep_roundings(jit::Source& source, bool batch_invariant) {
  if (batch_invariant) source.options.push_back("--fmad=false");
}

}  // namespace cosmati::cuda
