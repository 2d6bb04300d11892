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

// The ways' names in a policy's text, "operands=repacked": to choose among them by hand.
enum class OperandKind { any, repacked, registers, threads };
bool is_of_kind(OperandWay const& way, OperandKind kind);

// Takes the word "operands=..." out of the text of a policy. Throws Error(bad_request), which says what is
// legal.
OperandKind take_operand_kind(std::string& policy);

}  // namespace cosmati::plan
