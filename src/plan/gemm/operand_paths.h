// The paths of a problem's operands to the warp_specialized kernel: directly by TMA, repacked to the
// workspace first, loaded by threads if TMA cannot, or through registers if wgmma cannot read them in shared
// memory.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

struct OperandPath {
  CanonicalGemm form;      // the original problem, as one of the two products that compute d
  GemmRecipe passes;       // its repack_a and repack_b are the preceding passes
  bool exchanged = false;  // the product for which rows of d are not contiguous
};

// The first path has contiguous rows of the result, if possible, and passes for all operands that TMA or
// wgmma does not support. The others pass A through registers, let threads load unaligned operands of the
// right major, or exchange the operands if d has few rows; the first and the last accept either major of d.
// `side`: CanonicalGemm::swapped of the first path; few rows are not exchanged then.
std::vector<OperandPath> operand_paths(GemmProblem const& problem, std::optional<bool> side = {});

// Whether wgmma reads A from registers instead of shared memory.
bool takes_registers(OperandPath const& path);

// Describes the path of the caller's operands: "b transposed first".
std::string to_string(OperandPath const& path);

// Whether this path is of the requested kind; true if none is requested.
bool is_of_kind(OperandPath const& path, std::optional<OperandKind> kind);

}  // namespace cosmati::plan
