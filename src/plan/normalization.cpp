// The ways to normalise.
#include "src/plan/candidates.h"

COSMATI_PLAN(BatchNormProblem, {})
COSMATI_PLAN(LrnProblem, {})
