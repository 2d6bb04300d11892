// Candidates for addition, dropout, transformation and reduction.
#include "src/backend/cpu/own.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(ElementwiseProblem, {by_itself(cpu::own_candidate<ElementwiseProblem>())})
COSMATI_PRIMITIVE(AddProblem, {by_itself(cpu::own_candidate<AddProblem>())})
COSMATI_PRIMITIVE(DropoutProblem, {by_itself(cpu::own_candidate<DropoutProblem>())})
COSMATI_PRIMITIVE(TransformProblem, {by_itself(cpu::own_candidate<TransformProblem>())})
COSMATI_PRIMITIVE(ReduceProblem, {cpu::own_candidate<ReduceProblem>()})
