// Matrix products whose rows have the same bits whatever m and the batch are
// (docs/decisions/0028-batch-invariance.md): by one multiply, over ascending k, from one side.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {

// The multiply of one thread that the types ask for.
Multiply simple_multiply(CanonicalGemm const& form);

// Sums of this type must be added in one order; those of integers are the same in any.
inline bool keeps_order(PlanOptions const& options, DataType sum) {
  return options.batch_invariant && sum != DataType::s32;
}

// The fastest instructions that the types and the GPU have, of the main loop `kernel` if that is one's name.
Multiply invariant_multiply(CanonicalGemm const& form, Gpu const& gpu, std::string const& kernel);
// The reason why the main loop does not support that multiply; empty if it does.
std::string invariant_violation(MainLoop main_loop, CanonicalGemm const& form, Gpu const& gpu,
                                std::string const& kernel);

// CanonicalGemm::swapped by the strides of d alone, also where m is 1; nothing if that is not asked for.
std::optional<bool> invariant_side(GemmProblem const& problem, PlanOptions const& options);

// Leaves of `policies` those that add an element's products one after the other, by wgmma of one shape, but
// for a single one that was asked for, with the partition `asked`. Returns why none is left.
std::string keep_invariant(std::vector<NamedPolicy>& policies, std::optional<Partition> asked);

}  // namespace cosmati::plan
