// The ways in which a problem's operands may reach the warp_specialized kernel: as they lie, copied into
// workspace first, brought by threads where the copy engine cannot, or, where wgmma cannot read them in
// shared memory, through registers.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

struct OperandWay {
  CanonicalGemm form;  // as the problem lies, of one of the two products that give d
  GemmRecipe passes;   // whose repack_a and repack_b are what comes first
};

// The first has rows of the result contiguous, if they can be, and passes for all that the copy engine or
// wgmma does not take. The others let A go through registers, whatever d then is to the kernel, or let
// threads bring what lies right but is not aligned. `side`: CanonicalGemm::swapped of the first.
std::vector<OperandWay> operand_ways(GemmProblem const& problem, std::optional<bool> side = {});

// A goes to wgmma through registers, not from shared memory.
bool takes_registers(OperandWay const& way);

// What this way does with the caller's operands: "b transposed first".
std::string to_string(OperandWay const& way);

// To choose among them by hand; true if no kind is asked for.
bool is_of_kind(OperandWay const& way, std::optional<OperandKind> kind);

}  // namespace cosmati::plan
