// Softmax and the losses of classifiers: row operations, and the sums around them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cosmati/core/cluster.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

// The operations of primitive/rows.h.
enum : int { softmax, log_softmax, softmax_gradient, log_softmax_gradient, loss, loss_and_gradient };

// Chooses the threads that share a row, and whether the row stays in registers.
void share_rows(PrimitivePass& pass, int inputs, PrimitiveTarget const& target) {
  PrimitiveParameters& p = pass.parameters;
  PrimitivePolicy& policy = p.policy;
  auto const multiprocessors = static_cast<unsigned>(std::max(1, target.gpu.multiprocessors));
  auto const max_cached = static_cast<unsigned>(std::max(1, 64 / (policy.width * inputs)));
  policy.whole = p.run_extent % policy.width == 0;
  bool const packs = policy.runs_of_terms && policy.whole && inputs == 1 && pass.real == DataType::f32 &&
                     size_of(pass.inputs[0].type) == 2 && policy.width >= 4 && p.tensor[0].run_stride == 1;
  unsigned along;
  if (policy.runs_of_terms) {
    along = std::min(32u, power_of_two_from(p.terms));
    bool const few = p.positions < 8 * multiprocessors;
    // Losses alone have more instructions per thread than per element, so fewer threads share a row.
    if (packs && policy.operation == loss && !few && p.terms <= 16 * max_cached) along = std::min(16u, along);
    if (p.terms > 32 * max_cached || (few && p.terms > 32))
      along = std::min(primitive_threads, power_of_two_from(p.terms));
  } else {
    unsigned across = std::clamp(power_of_two_from(p.positions), 1u, 32u);
    // Adjacent threads read full cache lines; fewer positions per block if there would be few blocks.
    auto const line = static_cast<unsigned>(std::max(8 / policy.width, 1) * 4);
    while (across > line && p.positions / across < 2 * multiprocessors) across /= 2;
    along = std::min(primitive_threads / across, power_of_two_from(p.terms));
    if (p.positions / primitive_threads > 8 * multiprocessors && p.terms <= max_cached) along = 1;
  }
  policy.along = static_cast<int>(along);
  // A row that is too long for one block is held by the blocks of a cluster.
  auto const share_of = [&](int blocks) {
    unsigned const members = along * static_cast<unsigned>(blocks);
    return (p.terms + members - 1) / members;
  };
  int const max_blocks = max_cluster_blocks_of(target);
  if (policy.runs_of_terms && along == primitive_threads && max_blocks > 1) {
    auto const maximum = target.emulated ? (policy.width == 4 ? 2u : 0u) : max_cached;
    int blocks = 1;
    while (blocks < max_blocks && share_of(blocks) > maximum) blocks *= 2;
    if (share_of(blocks) <= maximum && p.positions <= (1u << 30) / 8) policy.cluster = blocks;
  }
  unsigned const share = share_of(policy.cluster);
  policy.unroll = target.emulated ? 2 : std::max(1, std::min(4, 32 / (policy.width * inputs)));
  policy.cached = share <= max_cached ? static_cast<int>(std::max(1u, share)) : 0;
  if (target.emulated) policy.cached = policy.runs_of_terms && policy.width == 4 && share <= 2 ? 2 : 0;
  policy.packed = packs && policy.cached > 0;
  // Blocks of one row, so that no row waits for the slowest of eight, where a multiprocessor holds 32 of them
  // and these have enough loads in flight.
  Index const row_bytes = Index{p.run_extent} * size_of(pass.inputs[0].type) * inputs;
  if (!target.emulated && policy.runs_of_terms && along == 32 && policy.cached > 0 &&
      policy.operation < loss && row_bytes >= 2048 && target.gpu.blocks_per_multiprocessor >= 32)
    policy.threads = 32;
  unsigned const across = static_cast<unsigned>(policy.threads) / along;
  pass.blocks = (p.positions + across - 1) / across * static_cast<unsigned>(policy.cluster);
  int const results = policy.runs_of_terms ? 1 : policy.width;
  // RowShared
  pass.shared_bytes = 8 + ((results * 2 + 1) * policy.threads + 2 * max_cluster_blocks) *
                              (target.emulated ? 8 : size_of(pass.real));
}

// A pass over the rows along axis `axis`; there is no launch if there are no elements.
PrimitivePass row_pass(Shape const& shape, int axis, int operation, std::vector<StridedTensor> const& inputs,
                       std::vector<StridedTensor> const& outputs, PrimitiveTarget const& target,
                       CollapsedSpace& space) {
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank));
  reduced[static_cast<std::size_t>(axis)] = true;
  std::vector<StridedTensor> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  std::vector<StridedTensor const*> tensors;
  for (StridedTensor const& tensor : all) tensors.push_back(&tensor);
  space = collapse(shape, reduced, tensors, 0);
  Index const row_stride = inputs[0].stride[axis];
  bool const of_terms = shape[axis] > 1 && (row_stride == 1 || space.positions[0].extent == 1 ||
                                            space.positions[0].stride[0] > row_stride);
  PrimitivePass pass;
  pass.family = PrimitiveFamily::rows;
  pass.real = real_of(all);
  fill_space(pass, space, inputs, outputs, run_width(tensors, space, of_terms, target, 32), of_terms);
  pass.parameters.policy.operation = operation;
  share_rows(pass, static_cast<int>(inputs.size()), target);
  finish(pass, space);
  return pass;
}

constexpr Index max_counted = Index{1} << 30;

std::string too_many(Index rows, Index classes) {
  if (rows <= max_counted && classes <= max_counted) return {};
  return fmt::format("{} rows of {} classes; one launch of this kernel supports at most {} of either", rows,
                     classes, max_counted);
}

// Computes the losses of the rows of scores (N, classes) into `losses` in the workspace, and the gradient if
// requested; returns how many there are: one per row, or one per block of the kernel, the sum of its rows.
// 16-bit scores must have sign 1.
Index add_losses(PrimitiveProgram& program, Shape const& shape, StridedTensor const& scores,
                 StridedTensor const* gradient, TensorDescription const& labels, Binding label_binding,
                 std::size_t losses, DataType real, double sign, double rubbish,
                 PrimitiveTarget const& target) {
  StridedTensor const loss_of_row = strided_in_workspace("losses", real, shape, {0}, losses);
  CollapsedSpace space;
  PrimitivePass pass = row_pass(shape, 1, gradient != nullptr ? loss_and_gradient : loss, {scores},
                                {gradient != nullptr ? *gradient : loss_of_row, loss_of_row}, target, space);
  PrimitiveParameters& p = pass.parameters;
  pass.real = real;
  p.scalar[0] = sign;
  p.scalar[1] = 1 / static_cast<double>(shape[0]);
  p.scalar[2] = rubbish;
  p.classes = static_cast<int>(shape[1]);
  PrimitiveTensor& label = p.tensor[primitive_inputs - 1];
  label.type = labels.type;
  label.run_stride = static_cast<int>(labels.layout.stride[0]);
  label.stride[0] = labels.layout.stride[0] * (p.policy.runs_of_terms ? 1 : p.policy.width);
  pass.counts = {{label_binding, labels.type, false}};
  Index const count =
      p.policy.runs_of_terms ? pass.blocks / static_cast<unsigned>(p.policy.cluster) : shape[0];
  program.passes.push_back(std::move(pass));
  return count;
}

// Adds a pass for the mean loss of `rows` rows from `sums` sums of their losses.
void add_mean(PrimitiveProgram& program, Index rows, Index sums, std::size_t losses, DataType real,
              StridedTensor loss_tensor, PrimitiveTarget const& target) {
  Reduction mean;
  mean.shape = Shape(sums);
  mean.reduced = {true};
  mean.terms = {"losses[e]", "v0", {}};
  mean.last = {"s0[e] / count", "loss", {{"count", static_cast<double>(rows)}}};
  mean.inputs = {strided_in_workspace("losses", real, mean.shape, {0}, losses)};
  loss_tensor.name = "loss";
  std::fill_n(loss_tensor.stride, max_rank, Index{0});
  mean.outputs = {std::move(loss_tensor)};
  add_reduction(program, mean, target);
}

}  // namespace

template <>
PrimitiveProgram lower(SoftmaxProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  bool const forward = problem.direction == Direction::forward;
  Shape const& shape = problem.y.shape();
  if (shape.size() == 0) return program;
  if (shape[problem.axis] > max_counted)
    program.refusal = fmt::format("rows of {} terms; one launch of this kernel supports at most {}",
                                  shape[problem.axis], max_counted);
  if (!program.refusal.empty()) return program;
  std::vector<StridedTensor> inputs, outputs;
  if (forward) {
    inputs = {strided("x", problem.x, argument_named(problem, "x"))};
    outputs = {strided("y", problem.y, argument_named(problem, "y"))};
  } else {
    inputs = {strided("y", problem.y, argument_named(problem, "y")),
              strided("dy", problem.dy, argument_named(problem, "dy"))};
    outputs = {strided("dx", problem.x, argument_named(problem, "dx"))};
  }
  int const operation = (forward ? softmax : softmax_gradient) + (problem.logarithm ? 1 : 0);
  std::vector<bool> row(static_cast<std::size_t>(shape.rank));
  row[static_cast<std::size_t>(problem.axis)] = true;
  CollapsedSpace space;
  for (Piece const& piece : pieces_of(shape, row))
    program.passes.push_back(
        row_pass(piece.shape, problem.axis, operation, piece.of(inputs), piece.of(outputs), target, space));
  return program;
}

template <>
PrimitiveProgram lower(CrossEntropyProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Shape const& shape = problem.x.shape();
  bool const forward = problem.direction == Direction::forward;
  if (shape.size() == 0) return program;
  program.refusal = too_many(shape[0], shape[1]);
  if (!program.refusal.empty()) return program;
  std::vector<StridedTensor> all{strided("x", problem.x, argument_named(problem, "x"))};
  if (problem.dx.present()) all.push_back(strided("dx", problem.dx, argument_named(problem, "dx")));
  if (forward) all.push_back(strided("loss", problem.loss, argument_named(problem, "loss")));
  DataType const real = real_of(all);
  std::size_t const losses = reserve(program, shape[0], real);
  Index const sums = add_losses(program, shape, all[0], problem.dx.present() ? &all[1] : nullptr,
                                problem.labels, argument_named(problem, "labels"), losses, real, 1,
                                std::numeric_limits<double>::infinity(), target);
  if (forward) add_mean(program, shape[0], sums, losses, real, all.back(), target);
  return program;
}

namespace {

// Adds a pass for the sum of the formula over axis 2 of the space; inputs are broadcast to it.
void add_sum(PrimitiveProgram& program, Shape const& shape, char const* text,
             std::vector<StridedTensor> inputs, std::vector<StridedTensor> outputs, std::string const& last,
             PrimitiveTarget const& target) {
  Reduction sum;
  sum.shape = shape;
  sum.reduced = {false, false, true};
  sum.terms = {text, "v0", {}};
  sum.last = {last, outputs[0].name, {}};
  sum.inputs = std::move(inputs);
  sum.outputs = std::move(outputs);
  add_reduction(program, sum, target);
}

// A matrix whose rows and columns are axes `a` and `b` of the space.
StridedTensor matrix(std::string name, TensorDescription const& tensor, int a, int b, Binding binding) {
  StridedTensor result{std::move(name), tensor, binding, {}};
  result.stride[a] = tensor.layout.stride[0];
  result.stride[b] = tensor.layout.stride[1];
  return result;
}

}  // namespace

template <>
PrimitiveProgram lower(RbfProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Index const count = problem.x.extent(0), features = problem.x.extent(1),
              classes = problem.centres.extent(0);
  bool const labeled = problem.labels.present(), forward = problem.direction == Direction::forward;
  auto const x = [&](int a, int b) { return matrix("x", problem.x, a, b, argument_named(problem, "x")); };
  auto const centre = [&](int a, int b) {
    return matrix("centre", problem.centres, a, b, argument_named(problem, "centres"));
  };
  std::vector<StridedTensor> all{x(0, 1), centre(0, 1)};
  for (TensorDescription const* tensor : {&problem.distances, &problem.loss, &problem.dcentres})
    if (tensor->present()) all.push_back({"", *tensor, {}, {}});
  DataType const real = real_of(all);
  Shape const table(count, classes);
  if (labeled) program.refusal = too_many(count, classes);
  if (!program.refusal.empty()) return program;
  std::size_t const own = labeled ? reserve(program, count * classes, real) : 0;
  StridedTensor const distances = strided_in_workspace("d", real, table, {0, 1}, own);
  if (forward || labeled) {
    std::vector<StridedTensor> outputs;
    std::string last = "s0[e]";
    if (labeled) outputs.push_back(distances);
    if (forward && problem.distances.present()) {
      outputs.push_back(matrix("distances", problem.distances, 0, 1, argument_named(problem, "distances")));
      if (labeled) last = "store(distances, s0[e]); s0[e]";
    }
    add_sum(program, {count, classes, features}, "let t = x[e] - centre[e]; t * t", {x(0, 2), centre(1, 2)},
            outputs, last, target);
  }
  StridedTensor gradient = distances;
  gradient.name = "g";
  if (labeled && table.size() > 0) {
    std::size_t const losses = reserve(program, count, real);
    // The gradients replace the distances: a row is read before it is written.
    Index const sums =
        add_losses(program, table, distances, forward ? nullptr : &gradient, problem.labels,
                   argument_named(problem, "labels"), losses, real, -1, problem.rubbish, target);
    if (forward)
      add_mean(program, count, sums, losses, real,
               strided("loss", problem.loss, argument_named(problem, "loss")), target);
  }
  if (forward) return program;
  auto const g = [&](int a, int b) {
    if (!labeled) return matrix("g", problem.distances, a, b, argument_named(problem, "ddistances"));
    StridedTensor result = gradient;
    std::fill_n(result.stride, max_rank, Index{0});
    result.stride[a] = classes;
    result.stride[b] = 1;
    return result;
  };
  add_sum(program, {count, features, classes}, "g[e] * 2 * (x[e] - centre[e])",
          {g(0, 2), x(0, 1), centre(2, 1)}, {matrix("dx", problem.x, 0, 1, argument_named(problem, "dx"))},
          "s0[e]", target);
  if (problem.dcentres.present())
    add_sum(program, {classes, features, count}, "g[e] * 2 * (centre[e] - x[e])",
            {g(2, 0), x(2, 1), centre(0, 1)},
            {matrix("dcentres", problem.dcentres, 0, 1, argument_named(problem, "dcentres"))}, "s0[e]",
            target);
  return program;
}

}  // namespace cosmati::plan
