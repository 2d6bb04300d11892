// Layer and RMS normalization: one pass over the rows. The gradients of weight and bias are summed in the
// same pass where a block can keep its sums in registers; otherwise they are a reduction over the rows.
#include <fmt/format.h>

#include <algorithm>

#include "cosmati/primitive/norm_operation.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

Index row_length(RowNormProblem const& problem) {
  Index length = 1;
  for (int d = problem.axis; d < problem.x.layout.rank(); ++d) length *= problem.x.extent(d);
  return length;
}

StridedTensor tensor_of(RowNormProblem const& problem, char const* name, TensorDescription const& tensor) {
  return strided(name, tensor, argument_named(problem, name));
}

// Chooses the threads of a row, and whether it stays in their registers.
void share_normalized_rows(PrimitivePass& pass, int kept_values, PrimitiveTarget const& target) {
  PrimitiveParameters& p = pass.parameters;
  PrimitivePolicy& policy = p.policy;
  auto const multiprocessors = static_cast<unsigned>(std::max(1, target.gpu.multiprocessors));
  int const max_elements = pass.real == DataType::f64 ? 32 : 64;
  // More than 16 single elements take the compiler tens of seconds.
  auto const max_cached =
      static_cast<unsigned>(std::clamp(max_elements / (policy.width * kept_values), 1, 16));
  unsigned along = std::min(32u, power_of_two_from(p.terms));
  bool const few = p.positions < 8 * multiprocessors;
  if (p.terms > 32 * max_cached || (few && p.terms > 32))
    along = std::min(primitive_threads, power_of_two_from(p.terms));
  policy.along = static_cast<int>(along);
  policy.whole = p.run_extent % policy.width == 0;
  unsigned const share = (p.terms + along - 1) / along;
  policy.unroll = target.emulated ? 2 : std::max(1, std::min(4, 32 / (policy.width * kept_values)));
  policy.cached = share <= max_cached ? static_cast<int>(std::max(1u, share)) : 0;
  if (target.emulated) policy.cached = policy.width == 4 && share <= 2 ? 2 : 0;
  unsigned const across = primitive_threads / along;
  pass.blocks = (p.positions + across - 1) / across;
  pass.shared_bytes =
      4 * static_cast<int>(primitive_threads) / 32 * (target.emulated ? 8 : size_of(pass.real));
}

std::vector<bool> axes_of_row(RowNormProblem const& problem) {
  std::vector<bool> row(static_cast<std::size_t>(problem.x.shape().rank));
  for (std::size_t d = static_cast<std::size_t>(problem.axis); d < row.size(); ++d) row[d] = true;
  return row;
}

// The operation and the tensors of the pass over the rows.
struct RowTensors {
  int operation = NormOperation::norm;
  std::vector<StridedTensor> inputs, outputs;
};
RowTensors tensors_of(RowNormProblem const& problem) {
  bool const forward = problem.direction == Direction::forward, centered = problem.centered();
  RowTensors rows;
  auto& [operation, inputs, outputs] = rows;
  operation |= (forward ? 0 : NormOperation::gradient) | (centered ? 0 : NormOperation::rms);
  inputs.push_back(tensor_of(problem, "x", problem.x));
  auto const add_parameter = [&](char const* name, TensorDescription const& tensor, int bit) {
    if (!tensor.present()) return;
    rows.operation |= bit;
    rows.inputs.push_back(tensor_of(problem, name, tensor));
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
  return rows;
}

// Assigns rows to the teams of blocks that also sum the gradients of weight and bias; returns false if their
// sums do not fit in registers, or if too few rows would share them.
bool share_rows_with_sums(PrimitivePass& pass, PrimitiveTarget const& target) {
  PrimitiveParameters& p = pass.parameters;
  PrimitivePolicy& policy = p.policy;
  if (p.run_extent % policy.width != 0 || pass.real != DataType::f32) return false;
  if (target.emulated && policy.width != 4) return false;
  auto const width = static_cast<unsigned>(policy.width);
  unsigned const maximum = target.emulated ? 2 : std::max(1u, norm_gradient_columns / width);
  unsigned const block =
      target.emulated || p.terms * width <= 8 * primitive_threads ? primitive_threads : 2 * primitive_threads;
  // Prefers the fewest idle threads, then the most threads per row.
  unsigned along = 0;
  auto const kept_by = [&](unsigned team) { return (p.terms + team - 1) / team; };
  for (unsigned team = 16; team <= block; team *= 2)
    if (kept_by(team) <= maximum && (along == 0 || kept_by(team) * team <= kept_by(along) * along))
      along = team;
  if (along == 0) return false;
  policy.threads = static_cast<int>(block);
  policy.whole = true;
  policy.along = static_cast<int>(along);
  policy.cached = target.emulated ? 2 : static_cast<int>(kept_by(along));
  policy.unroll = target.emulated || policy.cached == 1 ? 2 : 1;
  unsigned const across = block / along, rows = across * static_cast<unsigned>(policy.unroll);
  auto const multiprocessors = static_cast<unsigned>(target.emulated ? 1 : target.gpu.multiprocessors);
  // Each block processes its rows at least four times, unless there are fewer blocks than multiprocessors.
  unsigned const worth = std::max(multiprocessors, p.positions / (4 * rows));
  unsigned const resident = multiprocessors * static_cast<unsigned>(norm_gradient_blocks(
                                                  policy.threads, policy.width * policy.cached));
  pass.blocks = std::min({resident, worth, (p.positions + rows - 1) / rows});
  if (pass.blocks * rows * 2 > p.positions && !target.emulated) return false;
  int const numbers =
      2 * 2 * policy.unroll * policy.threads / 32 + policy.threads * policy.cached * policy.width;
  pass.shared_bytes = numbers * (target.emulated ? 8 : size_of(pass.real));
  return true;
}

// Adds the gradients in one pass over x and dy, and one over the sums of its blocks; returns false if the
// problem does not allow that.
bool add_rows_with_sums(PrimitiveProgram& program, RowNormProblem const& problem,
                        PrimitiveTarget const& target) {
  RowTensors rows = tensors_of(problem);
  std::vector<StridedTensor> results;
  auto const add_result = [&](char const* name, TensorDescription const& tensor, int bit) {
    if (!tensor.present()) return;
    rows.operation |= bit;
    results.push_back(tensor_of(problem, name, tensor));
  };
  add_result("dweight", problem.dweight, NormOperation::sums_weight);
  add_result("dbias", problem.dbias, NormOperation::sums_bias);
  Shape const& shape = problem.x.shape();
  std::vector<bool> const row = axes_of_row(problem);
  if (results.empty() || problem.axis == 0 || pieces_of(shape, row).size() > 1) return false;
  std::vector<StridedTensor> to = rows.outputs, all = rows.inputs;
  to.insert(to.end(), results.begin(), results.end());
  all.insert(all.end(), to.begin(), to.end());
  std::vector<StridedTensor const*> tensors;
  for (StridedTensor const& tensor : all) tensors.push_back(&tensor);
  CollapsedSpace space = collapse(shape, row, tensors, 0);
  for (std::size_t i = all.size() - results.size(); i < all.size(); ++i) {
    if (space.terms.size() != 1 || space.terms[0].stride[i] != 1) return false;
    for (SpaceAxis const& axis : space.positions)
      if (axis.stride[i] != 0) return false;
  }
  PrimitivePass pass;
  pass.family = PrimitiveFamily::rows;
  pass.real = real_of(all);
  int const width = run_width(tensors, space, true, target, 32);
  fill_space(pass, space, rows.inputs, to, width, true);
  if (!share_rows_with_sums(pass, target)) return false;
  PrimitiveParameters& p = pass.parameters;
  p.policy.operation = rows.operation;
  p.scalar[0] = 1 / static_cast<double>(row_length(problem));
  p.split_stride = p.run_extent;

  Reduction reduction;
  reduction.shape = {static_cast<Index>(pass.blocks), p.run_extent};
  reduction.reduced = {true, false};
  reduction.values = static_cast<int>(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::size_t const room = reserve(program, reduction.shape.size(), pass.real);
    StridedTensor sums =
        strided_in_workspace(fmt::format("part{}", i), pass.real, reduction.shape, {0, 1}, room);
    pass.outputs[i + 1].binding = sums.binding;
    pass.outputs[i + 1].type = p.tensor[primitive_inputs + 1 + i].type = pass.real;
    StridedTensor result = results[i];
    std::fill_n(result.stride, max_rank, Index{0});
    result.stride[1] = 1;
    reduction.inputs.push_back(std::move(sums));
    reduction.outputs.push_back(std::move(result));
  }
  reduction.terms = {"part0[e]", "v0", {}};
  reduction.last = {"s0[e]", results[0].name, {}};
  if (results.size() > 1) {
    reduction.terms.text = "store(v1, part1[e]); part0[e]";
    reduction.last.text = "store(" + results[1].name + ", s1[e]); s0[e]";
  }
  finish(pass, space);
  program.passes.push_back(std::move(pass));
  add_joining_reduction(program, reduction, target);
  return true;
}

void add_rows(PrimitiveProgram& program, RowNormProblem const& problem, PrimitiveTarget const& target) {
  auto const [operation, inputs, outputs] = tensors_of(problem);
  bool const forward = problem.direction == Direction::forward;
  Shape const& shape = problem.x.shape();
  std::vector<bool> const row = axes_of_row(problem);
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
    share_normalized_rows(pass, forward ? 1 : 2, target);
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
  if (problem.direction == Direction::backward) {
    if (problem.x.layout.size() > 0 && add_rows_with_sums(program, problem, target)) return program;
    // The gradients of the parameters come first, because dx may overwrite dy.
    add_parameter_gradients(program, problem, target);
  }
  if (problem.x.layout.size() > 0) add_rows(program, problem, target);
  return program;
}

}  // namespace cosmati::plan
