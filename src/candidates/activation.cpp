// Candidates for activation functions.
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(ActivationProblem)

COSMATI_PLAN(ActivationProblem, {}, {by_itself(cpu::activation_candidate())})
