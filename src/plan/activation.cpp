// Candidates for activation functions.
#include "src/backend/cpu/own.h"
#include "src/plan/candidates.h"
#include "src/plan/primitive/candidate.h"

COSMATI_PRIMITIVE(ActivationProblem)

COSMATI_PLAN(ActivationProblem, {}, {by_itself(cpu::activation_candidate())})
