// Every field of every problem by name, so that the same list writes problems to a line of JSON and reads
// them (src/plan/call_record.h, cli/operations/recorded_problem.h).
#pragma once
#include <type_traits>

#include "src/plan/operations.h"

namespace cosmati::plan {

template <class Self, class Problem>
concept FieldsOf = std::is_same_v<std::remove_const_t<Self>, Problem>;

// visit(name, field) for tensors, numbers, pairs, flags, enumerations and epilogues.
template <FieldsOf<GemmProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("a", problem.a);
  visit("b", problem.b);
  visit("c", problem.c);
  visit("d", problem.d);
  visit("epilogue", problem.epilogue);
  visit("accumulator", problem.accumulator);
  visit("by_pointers", problem.by_pointers);
  visit("compute", problem.compute);
}

template <FieldsOf<GroupedGemmProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("members", problem.members);
}

// The windows along the depth of volumes.
template <class Depth, class Visit>
void visit_depth(Depth& depth, Visit&& visit) {
  visit("depth_stride", depth.stride);
  visit("depth_pad_begin", depth.pad_begin);
  visit("depth_pad_end", depth.pad_end);
  visit("depth_dilation", depth.dilation);
}

template <FieldsOf<ConvolutionProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("x", problem.x);
  visit("w", problem.w);
  visit("y", problem.y);
  visit("db", problem.db);
  visit("stride", problem.stride);
  visit("pad_begin", problem.pad_begin);
  visit("pad_end", problem.pad_end);
  visit("dilation", problem.dilation);
  visit("groups", problem.groups);
  visit("epilogue", problem.epilogue);
  if (problem.has_depth()) visit_depth(problem.depth, visit);
}

template <FieldsOf<PoolingProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("mode", problem.mode);
  visit("x", problem.x);
  visit("y", problem.y);
  visit("indices", problem.indices);
  visit("window", problem.window);
  visit("stride", problem.stride);
  visit("pad_begin", problem.pad_begin);
  visit("pad_end", problem.pad_end);
  visit("dilation", problem.dilation);
  if (problem.has_depth()) {
    visit("depth_window", problem.depth.window);
    visit_depth(problem.depth, visit);
  }
}

template <FieldsOf<ActivationProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("function", problem.function);
  visit("alpha", problem.alpha);
  visit("beta", problem.beta);
  visit("x", problem.x);
  visit("y", problem.y);
  visit("dx", problem.dx);
}

template <FieldsOf<BatchNormProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("mode", problem.mode);
  visit("x", problem.x);
  visit("y", problem.y);
  visit("dx", problem.dx);
  visit("statistics", problem.statistics);
  visit("epsilon", problem.epsilon);
  visit("slope", problem.slope);
}

template <FieldsOf<RowNormProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("mode", problem.mode);
  visit("direction", problem.direction);
  visit("axis", problem.axis);
  if (problem.mode == RowNormMode::group) visit("groups", problem.groups);
  visit("x", problem.x);
  visit("y", problem.y);
  visit("dx", problem.dx);
  visit("weight", problem.weight);
  visit("bias", problem.bias);
  visit("dweight", problem.dweight);
  visit("dbias", problem.dbias);
  visit("statistics", problem.statistics);
  visit("epsilon", problem.epsilon);
}

template <FieldsOf<LrnProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("x", problem.x);
  visit("y", problem.y);
  visit("dx", problem.dx);
  visit("size", problem.size);
  visit("alpha", problem.alpha);
  visit("beta", problem.beta);
  visit("k", problem.k);
}

template <FieldsOf<SoftmaxProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("logarithm", problem.logarithm);
  visit("axis", problem.axis);
  visit("x", problem.x);
  visit("y", problem.y);
  visit("dy", problem.dy);
}

template <FieldsOf<CrossEntropyProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("x", problem.x);
  visit("labels", problem.labels);
  visit("loss", problem.loss);
  visit("dx", problem.dx);
}

template <FieldsOf<RbfProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("direction", problem.direction);
  visit("x", problem.x);
  visit("centres", problem.centres);
  visit("labels", problem.labels);
  visit("distances", problem.distances);
  visit("loss", problem.loss);
  visit("dcentres", problem.dcentres);
  visit("rubbish", problem.rubbish);
}

template <FieldsOf<AddProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("a", problem.a);
  visit("b", problem.b);
  visit("y", problem.y);
  visit("alpha", problem.alpha);
  visit("beta", problem.beta);
}

template <FieldsOf<DropoutProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("x", problem.x);
  visit("y", problem.y);
  visit("probability", problem.probability);
  visit("seed", problem.seed);
}

template <FieldsOf<TransformProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("x", problem.x);
  visit("y", problem.y);
}

template <FieldsOf<ReduceProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("operation", problem.operation);
  visit("x", problem.x);
  visit("y", problem.y);
}

template <FieldsOf<ElementwiseProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("x", problem.x);
  visit("y", problem.y);
  visit("epilogue", problem.epilogue);
}

template <FieldsOf<OptimizerProblem> Self, class Visit>
void visit_fields(Self& problem, Visit&& visit) {
  visit("kind", problem.kind);
  visit("parameter", problem.parameter);
  visit("gradient", problem.gradient);
  visit("state", problem.state);
  visit("momentum", problem.momentum);
  visit("nesterov", problem.nesterov);
  visit("weight_decay", problem.weight_decay);
  visit("beta1", problem.beta1);
  visit("beta2", problem.beta2);
  visit("epsilon", problem.epsilon);
  visit("numbers", problem.numbers);
  visit("scaling", problem.scaling);
}

// Returns the names of the field's enumeration, in order.
inline std::vector<std::string> names_of(ConvolutionDirection) {
  return {"forward", "data", "filter", "bias"};
}
inline std::vector<std::string> names_of(Direction) { return {"forward", "backward"}; }
inline std::vector<std::string> names_of(ComputeMode) {
  std::vector<std::string> names;
  for (int i = 0; i < compute_mode_count; ++i) names.emplace_back(name_of(static_cast<ComputeMode>(i)));
  return names;
}
inline std::vector<std::string> names_of(BatchNormMode) { return {"inference", "training", "backward"}; }
inline std::vector<std::string> names_of(RowNormMode) { return {"layer", "rms", "group"}; }
inline std::vector<std::string> names_of(OptimizerKind) { return {"sgd", "adam"}; }
inline std::vector<std::string> names_of(PoolingMode) {
  std::vector<std::string> names;
  for (int i = 0; i < pooling_mode_count; ++i) names.emplace_back(name_of(static_cast<PoolingMode>(i)));
  return names;
}
inline std::vector<std::string> names_of(ActivationFunction) {
  std::vector<std::string> names;
  for (int i = 0; i < activation_function_count; ++i)
    names.emplace_back(name_of(static_cast<ActivationFunction>(i)));
  return names;
}
inline std::vector<std::string> names_of(ReduceOperation) {
  std::vector<std::string> names;
  for (int i = 0; i < reduce_operation_count; ++i)
    names.emplace_back(name_of(static_cast<ReduceOperation>(i)));
  return names;
}

// The name of an operation in records.
#define COSMATI_NAME(Problem, name) \
  inline char const* subject_of(Problem const&) { return name; }
COSMATI_EACH_RECORDED_OPERATION(COSMATI_NAME)
#undef COSMATI_NAME

}  // namespace cosmati::plan
