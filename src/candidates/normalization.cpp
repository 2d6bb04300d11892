// Candidates for normalization.
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(BatchNormProblem)
COSMATI_PRIMITIVE(RowNormProblem)
COSMATI_PRIMITIVE(LrnProblem)

COSMATI_PLAN(BatchNormProblem, {})
COSMATI_PLAN(RowNormProblem, {by_itself(cpu::row_norm_candidate())})
COSMATI_PLAN(LrnProblem, {cpu::lrn_candidate()})
