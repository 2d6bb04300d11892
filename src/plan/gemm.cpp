// The ways to multiply matrices.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"

COSMATI_PLAN(GemmProblem, {cpu::openblas_candidate()})
