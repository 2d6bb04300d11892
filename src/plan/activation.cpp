// The ways to apply an activation function.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"

COSMATI_PLAN(ActivationProblem, {}, {cpu::activation_candidate()})
