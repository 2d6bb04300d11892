// Candidates for softmax and the losses.
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(SoftmaxProblem)
COSMATI_PRIMITIVE(CrossEntropyProblem)
COSMATI_PRIMITIVE(RbfProblem)

COSMATI_PLAN(SoftmaxProblem, {}, {by_itself(cpu::softmax_candidate())})
COSMATI_PLAN(CrossEntropyProblem, {cpu::cross_entropy_candidate()})
COSMATI_PLAN(RbfProblem, {cpu::rbf_candidate()})
