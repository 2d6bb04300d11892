// The ways to compute softmax and the losses.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"

COSMATI_PLAN(SoftmaxProblem, {}, {cpu::softmax_candidate()})
COSMATI_PLAN(CrossEntropyProblem, {cpu::cross_entropy_candidate()})
COSMATI_PLAN(RbfProblem, {cpu::rbf_candidate()})
