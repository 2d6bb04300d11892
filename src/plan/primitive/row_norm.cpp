// Layer and RMS normalization: one pass over the rows; the gradients of weight and bias are a reduction over
// the rows.
#include <fmt/format.h>

#include <algorithm>

#include "cosmati/primitive/norm_operation.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

constexpr unsigned threads = 256;

Index row_length(RowNormProblem const& problem) {
  Index length = 1;
  for (int d = problem.axis; d < problem.x.layout.rank(); ++d) length *= problem.x.extent(d);
  return length;
}

StridedTensor tensor_of(RowNormProblem const& problem, char const* name, TensorDescription const& tensor) {
  return strided(name, tensor, argument_named(problem, name));
}

// Chooses the threads of a row, and whether it stays in their registers.
void share_rows(PrimitivePass& pass, int kept_values, PrimitiveTarget const& target) {
  PrimitiveParameters& p = pass.parameters;
  PrimitivePolicy& policy = p.policy;
  auto const multiprocessors = static_cast<unsigned>(std::max(1, target.gpu.multiprocessors));
  int const max_elements = pass.real == DataType::f64 ? 32 : 64;
  auto const max_cached = static_cast<unsigned>(std::max(1, max_elements / (policy.width * kept_values)));
  unsigned along = std::min(32u, power_of_two_from(p.terms));
  bool const few = p.positions < 8 * multiprocessors;
  if (p.terms > 32 * max_cached || (few && p.terms > 32))
    along = std::min(threads, power_of_two_from(p.terms));
  policy.along = static_cast<int>(along);
  policy.whole = p.run_extent % policy.width == 0;
  unsigned const share = (p.terms + along - 1) / along;
  policy.unroll = target.emulated ? 2 : std::max(1, std::min(4, 32 / (policy.width * kept_values)));
  policy.cached = share <= max_cached ? static_cast<int>(std::max(1u, share)) : 0;
  if (target.emulated) policy.cached = policy.width == 4 && share <= 2 ? 2 : 0;
  unsigned const across = threads / along;
  pass.blocks = (p.positions + across - 1) / across;
  pass.shared_bytes = 2 * static_cast<int>(threads) / 32 * (target.emulated ? 8 : size_of(pass.real));
}

void add_rows(PrimitiveProgram& program, RowNormProblem const& problem, PrimitiveTarget const& target) {
  bool const forward = problem.direction == Direction::forward, centered = problem.centered();
  int operation =
      NormOperation::norm | (forward ? 0 : NormOperation::gradient) | (centered ? 0 : NormOperation::rms);
  std::vector<StridedTensor> inputs{tensor_of(problem, "x", problem.x)}, outputs;
  auto const add_parameter = [&](char const* name, TensorDescription const& tensor, int bit) {
    if (!tensor.present()) return;
    operation |= bit;
    inputs.push_back(tensor_of(problem, name, tensor));
  };
  if (forward) {
    add_parameter("weight", problem.weight, NormOperation::weight);
    add_parameter("bias", problem.bias, NormOperation::bias);
    outputs.push_back(tensor_of(problem, "y", problem.y));
    if (problem.statistics.present()) {
      operation |= NormOperation::saves;
      if (centered) outputs.push_back(tensor_of(problem, "saved_mean", problem.statistics));
      outputs.push_back(tensor_of(problem, "saved_inverse", problem.statistics));
    }
  } else {
    inputs.push_back(tensor_of(problem, "dy", problem.y));
    if (centered) inputs.push_back(tensor_of(problem, "mean", problem.statistics));
    inputs.push_back(tensor_of(problem, "inverse", problem.statistics));
    add_parameter("weight", problem.weight, NormOperation::weight);
    outputs.push_back(tensor_of(problem, "dx", problem.dx));
  }
  Shape const& shape = problem.x.shape();
  std::vector<bool> row(static_cast<std::size_t>(shape.rank));
  for (int d = problem.axis; d < shape.rank; ++d) row[static_cast<std::size_t>(d)] = true;
  for (Piece const& piece : pieces_of(shape, row)) {
    std::vector<StridedTensor> const from = piece.of(inputs), to = piece.of(outputs);
    std::vector<StridedTensor> all = from;
    all.insert(all.end(), to.begin(), to.end());
    std::vector<StridedTensor const*> tensors;
    for (StridedTensor const& tensor : all) tensors.push_back(&tensor);
    CollapsedSpace space = collapse(piece.shape, row, tensors, 0);
    if (space.terms.empty()) space.terms.push_back({1, std::vector<Index>(all.size(), 0)});
    PrimitivePass pass;
    pass.family = PrimitiveFamily::rows;
    pass.real = real_of(all);
    fill_space(pass, space, from, to, run_width(tensors, space, true, target, 32), true);
    pass.parameters.policy.operation = operation;
    pass.parameters.scalar[0] = 1 / static_cast<double>(row_length(problem));
    pass.parameters.scalar[1] = problem.epsilon;
    share_rows(pass, forward ? 1 : 2, target);
    finish(pass, space);
    program.passes.push_back(std::move(pass));
  }
}

void add_parameter_gradients(PrimitiveProgram& program, RowNormProblem const& problem,
                             PrimitiveTarget const& target) {
  bool const weight = problem.dweight.present(), bias = problem.dbias.present();
  if (!weight && !bias) return;
  std::string const difference = problem.centered() ? "(x[e] - mean[e])" : "x[e]";
  Reduction sums;
  sums.shape = problem.x.shape();
  sums.reduced.resize(static_cast<std::size_t>(sums.shape.rank));
  for (int d = 0; d < sums.shape.rank; ++d)
    sums.reduced[static_cast<std::size_t>(d)] = !problem.has_parameters_along(d);
  sums.inputs = {tensor_of(problem, "dy", problem.y)};
  if (weight) {
    sums.inputs.push_back(tensor_of(problem, "x", problem.x));
    if (problem.centered()) sums.inputs.push_back(tensor_of(problem, "mean", problem.statistics));
    sums.inputs.push_back(tensor_of(problem, "inverse", problem.statistics));
    sums.terms = {"dy[e] * (" + difference + " * inverse[e])", "v0", {}};
    sums.last = {"s0[e]", "dweight", {}};
    sums.outputs = {tensor_of(problem, "dweight", problem.dweight)};
  } else {
    sums.terms = {"dy[e]", "v0", {}};
    sums.last = {"s0[e]", "dbias", {}};
  }
  if (bias) sums.outputs.push_back(tensor_of(problem, "dbias", problem.dbias));
  if (problem.axis == 0) {  // one row, whose terms are the gradients
    Formula formula{sums.terms.text, weight ? "dweight" : "dbias", {}};
    if (weight && bias) formula.text = "store(dbias, dy[e]); " + formula.text;
    return add_map(program, sums.shape, formula, sums.inputs, sums.outputs, target);
  }
  if (weight && bias) {
    sums.values = 2;
    sums.terms.text = "store(v1, dy[e]); " + sums.terms.text;
    sums.last.text = "store(dbias, s1[e]); s0[e]";
  }
  add_reduction(program, sums, target);
}

}  // namespace

template <>
PrimitiveProgram lower(RowNormProblem const& given, PrimitiveTarget const& target) {
  RowNormProblem const problem = in_rows(given);
  PrimitiveProgram program;
  constexpr Index max_counted = Index{1} << 30;
  if (row_length(problem) > max_counted)
    program.refusal = fmt::format("rows of {} elements; one launch of this kernel supports at most {}",
                                  row_length(problem), max_counted);
  if (!program.refusal.empty()) return program;
  // The gradients of the parameters come first, because dx may overwrite dy.
  if (problem.direction == Direction::backward) add_parameter_gradients(program, problem, target);
  if (problem.x.layout.size() > 0) add_rows(program, problem, target);
  return program;
}

}  // namespace cosmati::plan
