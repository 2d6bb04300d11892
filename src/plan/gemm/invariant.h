// Matrix products whose rows are bit-identical for every m and batch
// (docs/decisions/0028-batch-invariance.md): all use the same multiply, ascending k and the same operand
// order.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

// Returns the single-thread multiply for these types.
Multiply simple_multiply(CanonicalGemm const& form);

// Whether sums of this type must be added in a fixed order; the order of integers does not matter.
inline bool keeps_order(PlanOptions const& options, DataType sum) {
  return options.batch_invariant && sum != DataType::s32;
}

// Returns the fastest multiply for the types and the GPU, limited to the main loop that `kernel` names, if
// any.
Multiply invariant_multiply(CanonicalGemm const& form, Gpu const& gpu, std::string const& kernel);
// The reason why the main loop does not support that multiply; empty if it does.
std::string invariant_violation(MainLoop main_loop, CanonicalGemm const& form, Gpu const& gpu,
                                std::string const& kernel);

// Returns CanonicalGemm::swapped determined by the strides of d alone, even if m is 1; nullopt if not
// requested.
std::optional<bool> invariant_side(GemmProblem const& problem, PlanOptions const& options);

// Keeps those of `policies` that add an element's products in order; unless one policy was requested, by a
// single shape of wgmma. Returns why none is left, or why `asked` is unsuitable.
std::string keep_invariant(std::vector<NamedPolicy>& policies, std::optional<Partition> asked);

}  // namespace cosmati::plan
