// Expressions over elements on the cpu backend.
#pragma once
#include "cosmati/ops/elementwise_expression.h"

namespace cosmati::cpu {

Candidate<ElementwiseProblem> elementwise_candidate();

}  // namespace cosmati::cpu
