// Candidates for optimizer steps.
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(OptimizerProblem, {by_itself(cpu::own_candidate<OptimizerProblem>())})
