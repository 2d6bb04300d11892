// Pooling, activations, normalization, softmax and loss of the C interface.
#include "cosmati/ops/activation.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/pooling.h"
#include "cosmati/ops/softmax.h"
#include "src/c_api/describe.h"
#include "src/c_api/problem_of.h"

using namespace cosmati;
using c_api::check_none;
using c_api::checked;
using c_api::enumerator_of;
using c_api::guarded;
using c_api::tensor_of;

namespace {

static_assert(static_cast<int>(Direction::forward) == COSMATI_FORWARD &&
              static_cast<int>(Direction::backward) == COSMATI_BACKWARD);
static_assert(static_cast<int>(PoolingMode::max) == COSMATI_POOLING_MAX &&
              static_cast<int>(PoolingMode::average) == COSMATI_POOLING_AVERAGE &&
              static_cast<int>(PoolingMode::average_with_padding) == COSMATI_POOLING_AVERAGE_WITH_PADDING);
static_assert(static_cast<int>(ActivationFunction::relu) == COSMATI_ACTIVATION_RELU &&
              static_cast<int>(ActivationFunction::leaky_relu) == COSMATI_ACTIVATION_LEAKY_RELU &&
              static_cast<int>(ActivationFunction::elu) == COSMATI_ACTIVATION_ELU &&
              static_cast<int>(ActivationFunction::sigmoid) == COSMATI_ACTIVATION_SIGMOID &&
              static_cast<int>(ActivationFunction::tanh) == COSMATI_ACTIVATION_TANH &&
              static_cast<int>(ActivationFunction::scaled_tanh) == COSMATI_ACTIVATION_SCALED_TANH &&
              static_cast<int>(ActivationFunction::gelu) == COSMATI_ACTIVATION_GELU &&
              static_cast<int>(ActivationFunction::gelu_tanh) == COSMATI_ACTIVATION_GELU_TANH &&
              static_cast<int>(ActivationFunction::silu) == COSMATI_ACTIVATION_SILU);
static_assert(static_cast<int>(BatchNormMode::inference) == COSMATI_BATCH_NORM_INFERENCE &&
              static_cast<int>(BatchNormMode::training) == COSMATI_BATCH_NORM_TRAINING &&
              static_cast<int>(BatchNormMode::backward) == COSMATI_BATCH_NORM_BACKWARD);

Direction direction_of(char const* operation, int value) {
  return enumerator_of<Direction>(operation, "direction", value, 2);
}

template <class Given>
cosmati_status row_norm_problem(RowNormMode mode, char const* operation, Given const* row_norm,
                                cosmati_problem_t* problem) {
  return guarded([&] {
    Given const& given = checked(operation, row_norm, problem);
    RowNormProblem result;
    result.mode = mode;
    result.direction = direction_of(operation, given.direction);
    if constexpr (requires { given.groups; })
      result.groups = given.groups;
    else
      result.axis = given.axis;
    result.x = tensor_of(operation, "x", given.x);
    result.y = tensor_of(operation, "y", given.y);
    result.dx = tensor_of(operation, "dx", given.dx);
    result.weight = tensor_of(operation, "weight", given.weight);
    result.bias = tensor_of(operation, "bias", given.bias);
    result.dweight = tensor_of(operation, "dweight", given.dweight);
    result.dbias = tensor_of(operation, "dbias", given.dbias);
    result.statistics = tensor_of(operation, "statistics", given.statistics);
    if (result.direction == Direction::forward) {
      check_none(operation, "dx", given.dx, "BACKWARD");
      check_none(operation, "dweight", given.dweight, "BACKWARD");
      check_none(operation, "dbias", given.dbias, "BACKWARD");
    } else {
      check_none(operation, "bias", given.bias, "FORWARD");
    }
    result.epsilon = given.epsilon;
    c_api::give(problem, result);
  });
}

}  // namespace

cosmati_status cosmati_layer_norm_problem(cosmati_row_norm const* layer_norm, cosmati_problem_t* problem) {
  return row_norm_problem(RowNormMode::layer, "layer normalization", layer_norm, problem);
}

cosmati_status cosmati_rms_norm_problem(cosmati_row_norm const* rms_norm, cosmati_problem_t* problem) {
  return row_norm_problem(RowNormMode::rms, "RMS normalization", rms_norm, problem);
}

cosmati_status cosmati_group_norm_problem(cosmati_group_norm const* group_norm, cosmati_problem_t* problem) {
  return row_norm_problem(RowNormMode::group, "group normalization", group_norm, problem);
}

cosmati_status cosmati_pooling_problem(cosmati_pooling const* pooling, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "pooling";
    cosmati_pooling const& given = checked(operation, pooling, problem);
    PoolingProblem result;
    result.direction = direction_of(operation, given.direction);
    result.mode = enumerator_of<PoolingMode>(operation, "mode", given.mode, pooling_mode_count);
    result.x = tensor_of(operation, "x", given.x);
    result.y = tensor_of(operation, "y", given.y);
    result.indices = tensor_of(operation, "indices", given.indices);
    for (int i = 0; i < 2; ++i) {
      result.window[i] = given.window[i];
      result.stride[i] = given.stride[i];
      result.pad_begin[i] = given.pad_begin[i];
      result.pad_end[i] = given.pad_end[i];
      result.dilation[i] = given.dilation[i];
    }
    if (result.has_depth())
      result.depth = {given.depth_window, given.depth_stride, given.depth_pad_begin, given.depth_pad_end,
                      given.depth_dilation};
    c_api::give(problem, result);
  });
}

int64_t cosmati_pooling_extent(int64_t input, int64_t window, int64_t stride, int64_t pad_begin,
                               int64_t pad_end, int64_t dilation, int ceil_mode) {
  return stride < 1 ? 0 : pooling_extent(input, window, stride, pad_begin, pad_end, dilation, ceil_mode != 0);
}

cosmati_status cosmati_activation_problem(cosmati_activation const* activation, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "activation";
    cosmati_activation const& given = checked(operation, activation, problem);
    ActivationProblem result;
    result.direction = direction_of(operation, given.direction);
    result.function =
        enumerator_of<ActivationFunction>(operation, "function", given.function, activation_function_count);
    bool const own = given.parameters != 0;
    result.alpha = own ? given.alpha : default_alpha(result.function);
    result.beta = own ? given.beta : default_beta(result.function);
    result.x = tensor_of(operation, "x", given.x);
    result.y = tensor_of(operation, "y", given.y);
    result.dx = tensor_of(operation, "dx", given.dx);
    if (result.direction == Direction::forward) check_none(operation, "dx", given.dx, "BACKWARD");
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_batch_norm_problem(cosmati_batch_norm const* batch_norm, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "batch normalization";
    cosmati_batch_norm const& given = checked(operation, batch_norm, problem);
    BatchNormProblem result;
    result.mode = enumerator_of<BatchNormMode>(operation, "mode", given.mode, 3);
    result.x = tensor_of(operation, "x", given.x);
    result.y = tensor_of(operation, "y", given.y);
    result.dx = tensor_of(operation, "dx", given.dx);
    if (result.mode != BatchNormMode::backward) check_none(operation, "dx", given.dx, "BACKWARD");
    result.statistics = tensor_of(operation, "statistics", given.statistics);
    result.epsilon = given.epsilon;
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_softmax_problem(cosmati_softmax const* softmax, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "softmax";
    cosmati_softmax const& given = checked(operation, softmax, problem);
    SoftmaxProblem result;
    result.direction = direction_of(operation, given.direction);
    result.logarithm = given.logarithm != 0;
    result.axis = given.axis;
    result.x = tensor_of(operation, "x", given.x);
    result.y = tensor_of(operation, "y", given.y);
    result.dy = tensor_of(operation, "dy", given.dy);
    if (result.direction == Direction::forward) check_none(operation, "dy", given.dy, "BACKWARD");
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_cross_entropy_problem(cosmati_cross_entropy const* cross_entropy,
                                             cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "cross-entropy";
    cosmati_cross_entropy const& given = checked(operation, cross_entropy, problem);
    CrossEntropyProblem result;
    result.direction = direction_of(operation, given.direction);
    result.x = tensor_of(operation, "x", given.x);
    result.labels = tensor_of(operation, "labels", given.labels);
    result.loss = tensor_of(operation, "loss", given.loss);
    if (result.direction == Direction::backward) check_none(operation, "loss", given.loss, "FORWARD");
    result.dx = tensor_of(operation, "dx", given.dx);
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_lrn_problem(cosmati_lrn const* lrn, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "local response normalization";
    cosmati_lrn const& given = checked(operation, lrn, problem);
    LrnProblem result;
    result.direction = direction_of(operation, given.direction);
    result.x = tensor_of(operation, "x", given.x);
    result.y = tensor_of(operation, "y", given.y);
    result.dx = tensor_of(operation, "dx", given.dx);
    if (result.direction == Direction::forward) check_none(operation, "dx", given.dx, "BACKWARD");
    if (given.window < 1 || given.window >= std::int64_t{1} << 31)
      c_api::refuse(std::string(operation) + ": window is " + std::to_string(given.window) +
                    "; it must be at least 1 and below 2^31");
    result.size = given.window;
    result.alpha = given.alpha;
    result.beta = given.beta;
    result.k = given.k;
    c_api::give(problem, result);
  });
}

cosmati_status cosmati_rbf_problem(cosmati_rbf const* rbf, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "rbf";
    cosmati_rbf const& given = checked(operation, rbf, problem);
    RbfProblem result;
    result.direction = direction_of(operation, given.direction);
    result.x = tensor_of(operation, "x", given.x);
    result.centres = tensor_of(operation, "centres", given.centres);
    result.labels = tensor_of(operation, "labels", given.labels);
    result.distances = tensor_of(operation, "distances", given.distances);
    result.loss = tensor_of(operation, "loss", given.loss);
    result.dcentres = tensor_of(operation, "dcentres", given.dcentres);
    bool const forward = result.direction == Direction::forward, labeled = given.labels.rank != 0;
    if (!forward || !labeled) check_none(operation, "loss", given.loss, "FORWARD with labels");
    if (!forward && labeled)
      check_none(operation, "distances", given.distances, "FORWARD, and BACKWARD without labels,");
    if (forward) check_none(operation, "dcentres", given.dcentres, "BACKWARD");
    result.rubbish = given.rubbish;
    c_api::give(problem, result);
  });
}
