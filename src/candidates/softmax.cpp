// Candidates for softmax and the losses.
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(SoftmaxProblem, {}, {by_itself(cpu::own_candidate<SoftmaxProblem>())})
COSMATI_PRIMITIVE(CrossEntropyProblem, {cpu::own_candidate<CrossEntropyProblem>()})
COSMATI_PRIMITIVE(RbfProblem, {cpu::own_candidate<RbfProblem>()})
