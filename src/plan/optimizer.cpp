// Candidates for optimizer steps.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"
#include "src/plan/primitive/candidate.h"

COSMATI_PRIMITIVE(OptimizerProblem)

COSMATI_PLAN(OptimizerProblem, {by_itself(cpu::optimizer_candidate())})
