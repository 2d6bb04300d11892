// The ways to take an optimiser's step.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"

COSMATI_PLAN(OptimizerProblem, {cpu::optimizer_candidate()})
