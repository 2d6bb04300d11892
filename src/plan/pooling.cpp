// The ways to pool.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"

COSMATI_PLAN(PoolingProblem, {}, {cpu::pooling_candidate()})
