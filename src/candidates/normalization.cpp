// Candidates for normalization.
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(BatchNormProblem, {cpu::batch_norm_then_activation_candidate()})
COSMATI_PRIMITIVE(RowNormProblem, {by_itself(cpu::own_candidate<RowNormProblem>())})
COSMATI_PRIMITIVE(LrnProblem, {cpu::own_candidate<LrnProblem>()})
