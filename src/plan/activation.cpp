// The ways to apply an activation function.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"
#include "src/plan/primitive/candidate.h"

COSMATI_PRIMITIVE(ActivationProblem)

COSMATI_PLAN(ActivationProblem, {}, {by_itself(cpu::activation_candidate())})
