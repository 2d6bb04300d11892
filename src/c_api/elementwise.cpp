// Element-wise operations and optimizers of the C interface.
#include "cosmati/ops/elementwise.h"

#include "cosmati/ops/optimizer.h"
#include "src/c_api/describe.h"
#include "src/c_api/problem_of.h"

using namespace cosmati;
using c_api::checked;
using c_api::enumerator_of;
using c_api::guarded;
using c_api::tensor_of;

namespace {

static_assert(static_cast<int>(ReduceOperation::sum) == COSMATI_REDUCE_SUM &&
              static_cast<int>(ReduceOperation::mean) == COSMATI_REDUCE_MEAN &&
              static_cast<int>(ReduceOperation::max) == COSMATI_REDUCE_MAX &&
              static_cast<int>(ReduceOperation::min) == COSMATI_REDUCE_MIN &&
              static_cast<int>(ReduceOperation::sum_of_squares) == COSMATI_REDUCE_SUM_OF_SQUARES);
static_assert(static_cast<int>(OptimizerKind::sgd) == COSMATI_SGD &&
              static_cast<int>(OptimizerKind::adam) == COSMATI_ADAM);

}  // namespace

cosmati_status cosmati_add_problem(cosmati_add const* add, cosmati_problem_t* problem) {
  return guarded([&] {
    cosmati_add const& given = checked("add", add, problem);
    AddProblem result;
    result.a = tensor_of("add", "a", given.a);
    result.b = tensor_of("add", "b", given.b);
    result.y = tensor_of("add", "y", given.y);
    result.alpha = given.alpha;
    result.beta = given.beta;
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_transform_problem(cosmati_transform const* transform, cosmati_problem_t* problem) {
  return guarded([&] {
    cosmati_transform const& given = checked("transform", transform, problem);
    TransformProblem result;
    result.x = tensor_of("transform", "x", given.x);
    result.y = tensor_of("transform", "y", given.y);
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_reduce_problem(cosmati_reduce const* reduce, cosmati_problem_t* problem) {
  return guarded([&] {
    cosmati_reduce const& given = checked("reduce", reduce, problem);
    ReduceProblem result;
    result.operation =
        enumerator_of<ReduceOperation>("reduce", "operation", given.operation, reduce_operation_count);
    result.x = tensor_of("reduce", "x", given.x);
    result.y = tensor_of("reduce", "y", given.y);
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_dropout_problem(cosmati_dropout const* dropout, cosmati_problem_t* problem) {
  return guarded([&] {
    cosmati_dropout const& given = checked("dropout", dropout, problem);
    DropoutProblem result;
    result.x = tensor_of("dropout", "x", given.x);
    result.y = tensor_of("dropout", "y", given.y);
    result.probability = given.probability;
    result.seed = given.seed;
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_optimizer_problem(cosmati_optimizer const* optimizer, cosmati_problem_t* problem) {
  return guarded([&] {
    cosmati_optimizer const& given = checked("optimizer", optimizer, problem);
    OptimizerProblem result;
    result.kind = enumerator_of<OptimizerKind>("optimizer", "kind", given.kind, 2);
    result.nesterov = given.nesterov != 0;
    result.parameter = tensor_of("optimizer", "parameter", given.parameter);
    result.gradient = tensor_of("optimizer", "gradient", given.gradient);
    result.state = tensor_of("optimizer", "state", given.state);
    result.momentum = given.momentum;
    result.weight_decay = given.weight_decay;
    result.beta1 = given.beta1;
    result.beta2 = given.beta2;
    result.epsilon = given.epsilon;
    c_api::give(problem, result);
  });
}
