// Candidates for pooling.
#include "src/backend/cpu/conv/chwn16.h"
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(PoolingProblem, {cpu::chwn16_pooling_candidate()}, {cpu::own_candidate<PoolingProblem>()})
