// Candidates for pooling.
#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(PoolingProblem)

COSMATI_PLAN(PoolingProblem, {cpu::chwn16_pooling_candidate()}, {cpu::pooling_candidate()})
