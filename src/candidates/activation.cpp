// Candidates for activation functions.
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(ActivationProblem, {}, {by_itself(cpu::own_candidate<ActivationProblem>())})
