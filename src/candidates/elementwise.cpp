// Candidates for addition, dropout, transformation and reduction.
#include "src/backend/cpu/elementwise.h"
#include "src/backend/cpu/own.h"
#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

COSMATI_PRIMITIVE(ElementwiseProblem)
COSMATI_PRIMITIVE(AddProblem)
COSMATI_PRIMITIVE(DropoutProblem)
COSMATI_PRIMITIVE(TransformProblem)
COSMATI_PRIMITIVE(ReduceProblem)

COSMATI_PLAN(ElementwiseProblem, {by_itself(cpu::elementwise_candidate())})
COSMATI_PLAN(AddProblem, {by_itself(cpu::add_candidate())})
COSMATI_PLAN(DropoutProblem, {by_itself(cpu::dropout_candidate())})
COSMATI_PLAN(TransformProblem, {by_itself(cpu::transform_candidate())})
COSMATI_PLAN(ReduceProblem, {cpu::reduce_candidate()})
