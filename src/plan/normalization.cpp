// Candidates for normalization.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"
#include "src/plan/primitive/candidate.h"

COSMATI_PRIMITIVE(BatchNormProblem)
COSMATI_PRIMITIVE(LrnProblem)

COSMATI_PLAN(BatchNormProblem, {})
COSMATI_PLAN(LrnProblem, {cpu::lrn_candidate()})
