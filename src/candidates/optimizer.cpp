// Candidates for optimizer steps.
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(OptimizerProblem)

COSMATI_PLAN(OptimizerProblem, {by_itself(cpu::optimizer_candidate())})
