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

// In the first path, rows of the result are contiguous if possible, and all operands that TMA or wgmma does
// not support are repacked. The others pass A through registers, let threads load unaligned operands of the
// right major, or exchange the operands if d has few rows; the first and the last accept either major of d.
// Arrays of pointers are neither repacked nor copied by threads, so there may be no path.
// `side` prescribes CanonicalGemm::swapped for the first path; operands are then not exchanged for few rows.
std::vector<OperandPath> operand_paths(GemmProblem const& problem, std::optional<bool> side = {});

// Whether wgmma reads A from registers instead of shared memory.
bool takes_registers(OperandPath const& path);

// Describes the path of the caller's operands: "b transposed first".
std::string to_string(OperandPath const& path);

// Whether this path is of the requested kind; true if none is requested.
bool is_of_kind(OperandPath const& path, std::optional<OperandKind> kind);

}  // namespace cosmati::plan
