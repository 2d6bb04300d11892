// Candidates for pooling.
#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"
#include "src/plan/primitive/candidate.h"

COSMATI_PRIMITIVE(PoolingProblem)

COSMATI_PLAN(PoolingProblem, {cpu::chwn16_pooling_candidate()}, {cpu::pooling_candidate()})
