// Expressions over elements on the backend cpu.
#pragma once
#include "cosmati/ops/elementwise_expression.h"

namespace cosmati::cpu {

Candidate<ElementwiseProblem> elementwise_candidate();

}  // namespace cosmati::cpu
