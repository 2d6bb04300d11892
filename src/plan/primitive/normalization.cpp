// Batch normalization in one or two passes, and local response normalization.
#include <fmt/format.h>

#include <algorithm>

#include "cosmati/core/cluster.h"
#include "cosmati/primitive/lrn_size.h"
#include "src/ops/architecture.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

std::vector<bool> all_but_channels(Shape const& shape) {
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank), true);
  reduced[1] = false;
  return reduced;
}

// Scale, bias, mean, variance or a gradient of these.
StridedTensor statistic(BatchNormProblem const& problem, char const* name) {
  return strided_along(name, problem.statistics, 1, argument_named(problem, name));
}
// A value per channel in the workspace, in the type of the sums.
StridedTensor own_statistic(PrimitiveProgram& program, BatchNormProblem const& problem, char const* name,
                            DataType real) {
  Shape const& shape = problem.x.shape();
  return strided_in_workspace(name, real, shape, {1}, reserve(program, shape[1], real));
}

// y = f(z) for the text of z, in which epsilon is the only constant.
Formula activated(BatchNormProblem const& problem, std::string const& z) {
  Formula formula;
  if (!problem.has_activation())
    formula.text = z;
  else if (problem.slope == 0)
    formula.text = "relu(" + z + ")";
  else
    formula.text = "leaky_relu(" + z + ", slope)";
  formula.constants = {{"epsilon", problem.epsilon}, {"slope", problem.slope}};
  formula.result = "y";
  return formula;
}

// y from statistics that a kernel computes itself or reads.
Formula normalization_of(BatchNormProblem const& problem) {
  return activated(problem, "(x[e] - mean[e]) * (scale[e] / sqrt(variance[e] + epsilon)) + bias[e]");
}

// True if roots and divisions are computed once per channel by a separate pass, which needs workspace: if
// channels are contiguous, the kernel would otherwise compute them for every element.
bool channels_apart(BatchNormProblem const& problem, PrimitiveTarget const& target) {
  Shape const& shape = problem.x.shape();
  constexpr Index worth_a_launch = Index{1} << 20;
  return problem.x.layout.stride[1] == 1 && shape[1] > 1 && target.max_splits > 1 &&
         shape.size() >= (target.emulated ? 1 : worth_a_launch);
}

// Adds a pass that computes a value per channel in the workspace; `inputs` vary only along axis 1.
StridedTensor add_channel_value(PrimitiveProgram& program, BatchNormProblem const& problem, char const* name,
                                char const* text, std::vector<StridedTensor> inputs,
                                PrimitiveTarget const& target) {
  Shape const channels(problem.x.extent(1));
  for (StridedTensor& input : inputs) {
    input.stride[0] = input.stride[1];
    std::fill_n(input.stride + 1, max_rank - 1, Index{0});
  }
  DataType const real = real_of({strided("x", problem.x, {}), strided("statistics", problem.statistics, {})});
  std::size_t const room = reserve(program, channels[0], real);
  Formula formula;
  formula.text = text;
  formula.constants = {{"epsilon", problem.epsilon}};
  formula.result = name;
  add_map(program, channels, formula, std::move(inputs),
          {strided_in_workspace(name, real, channels, {0}, room)}, target);
  return strided_in_workspace(name, real, problem.x.shape(), {1}, room);
}

// Adds y = f((x - mean) * scale * inverse + bias) with a mean and an inverse per channel.
void add_normalization_by_inverse(PrimitiveProgram& program, BatchNormProblem const& problem,
                                  StridedTensor const& mean, StridedTensor const& inverse,
                                  PrimitiveTarget const& target) {
  Formula const formula = activated(problem, "(x[e] - mean[e]) * (scale[e] * inverse[e]) + bias[e]");
  add_map(program, problem.x.shape(), formula,
          {strided("x", problem.x, argument_named(problem, "x")), mean, inverse, statistic(problem, "scale"),
           statistic(problem, "bias")},
          {strided("y", problem.y, argument_named(problem, "y"))}, target);
}

// Adds y = f((x - mean) / sqrt(variance + epsilon) * scale + bias) with given statistics.
void add_normalization(PrimitiveProgram& program, BatchNormProblem const& problem,
                       PrimitiveTarget const& target) {
  StridedTensor const scale = statistic(problem, "scale"), variance = statistic(problem, "variance");
  std::vector<StridedTensor> inputs{strided("x", problem.x, argument_named(problem, "x")),
                                    statistic(problem, "mean"), statistic(problem, "bias")};
  Formula formula = normalization_of(problem);
  if (channels_apart(problem, target)) {
    formula = activated(problem, "(x[e] - mean[e]) * factor[e] + bias[e]");
    inputs.push_back(add_channel_value(program, problem, "factor", "scale[e] / sqrt(variance[e] + epsilon)",
                                       {scale, variance}, target));
  } else {
    inputs.push_back(variance);
    inputs.push_back(scale);
  }
  add_map(program, problem.x.shape(), formula, std::move(inputs),
          {strided("y", problem.y, argument_named(problem, "y"))}, target);
}

// Makes the passes from `first` on run backwards: they begin with the data that the previous passes read
// last, which may still be in the L2 cache.
void go_backwards(PrimitiveProgram& program, std::size_t first) {
  for (std::size_t i = first; i < program.passes.size(); ++i)
    program.passes[i].parameters.policy.backwards = true;
}

// Adds training in a single pass if the shared memory of a cluster can hold a channel; returns false
// otherwise.
bool add_training_in_clusters(PrimitiveProgram& program, BatchNormProblem const& problem,
                              PrimitiveTarget const& target) {
  if (max_cluster_blocks_of(target) < 2) return false;
  Shape const& shape = problem.x.shape();
  std::vector<StridedTensor> const inputs{strided("x", problem.x, argument_named(problem, "x")),
                                          statistic(problem, "scale"), statistic(problem, "bias")};
  std::vector<StridedTensor> const outputs{strided("y", problem.y, argument_named(problem, "y")),
                                           statistic(problem, "saved_mean"),
                                           statistic(problem, "saved_variance")};
  std::vector<StridedTensor> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  std::vector<StridedTensor const*> tensors;
  for (StridedTensor const& tensor : all) tensors.push_back(&tensor);
  CollapsedSpace const space = collapse(shape, all_but_channels(shape), tensors, 0);
  double terms = 1;
  for (SpaceAxis const& axis : space.terms) terms *= static_cast<double>(axis.extent);
  int width = run_width(tensors, space, true, target, 32);
  while (!target.emulated && width * std::max(size_of(problem.x.type), size_of(problem.y.type)) > 16)
    width /= 2;
  if (space.terms[0].stride[0] != 1 || width < (target.emulated ? 4 : 2) || terms > 0x1p24) return false;

  PrimitivePass pass;
  pass.family = PrimitiveFamily::channels;
  pass.real = real_of({inputs[0], inputs[1]});
  fill_space(pass, space, inputs, outputs, width, true);
  PrimitiveParameters& p = pass.parameters;
  int const real_bytes = target.emulated ? 8 : size_of(pass.real);
  int const run_bytes = width * (target.emulated ? 8 : size_of(problem.x.type));
  int threads = 256;
  auto const bytes_of_block = [&](unsigned blocks) {
    int const sums = 3 * (threads / 32 + 2 * max_cluster_blocks);
    unsigned const members = blocks * static_cast<unsigned>(threads),
                   runs = (p.terms + members - 1) / members;
    return 16 + (sums * real_bytes + 15) / 16 * 16 + static_cast<int>(runs) * threads * run_bytes;
  };
  auto const multiprocessors = static_cast<unsigned>(target.emulated ? 0 : target.gpu.multiprocessors);
  auto const max_blocks = static_cast<unsigned>(max_cluster_blocks_of(target));
  unsigned blocks = 2;
  // Prefers four resident blocks per multiprocessor, then two, so that some load while others wait for their
  // clusters; if a channel does not fit, one block with twice the threads. Clusters grow until the whole
  // device is busy.
  auto const fit = [&](int max_bytes) {
    auto const fits = [&] {
      return bytes_of_block(blocks) <= max_bytes && p.positions * blocks >= multiprocessors;
    };
    for (blocks = 2; blocks < max_blocks && !fits();) blocks *= 2;
    return fits();
  };
  int const all_bytes = target.gpu.shared_bytes_per_multiprocessor - 1024;
  if (target.emulated ? !fit(200 << 10) : !fit(all_bytes / 4 - 768) && !fit(all_bytes / 2 - 512)) {
    threads = 512;
    if (target.emulated || !fit(all_bytes)) return false;
  }
  p.policy.threads = threads;
  p.policy.cluster = static_cast<int>(blocks);
  p.policy.unroll = target.emulated ? 2 : std::max(1, 16 / width);
  p.policy.whole = p.run_extent % width == 0;
  pass.blocks = (target.emulated ? std::min(p.positions, 2u) : p.positions) * blocks;
  pass.stays = true;
  pass.shared_bytes = bytes_of_block(blocks);
  pass.function =
      function_of(normalization_of(problem), {"x", "scale", "bias", "mean", "variance"}, {"y"}, p);
  Formula const last{"store(saved_variance, s2[e] / s0[e]); s1[e]", "saved_mean", {}};
  pass.last = function_of(last, {"s0", "s1", "s2"}, {"saved_mean", "saved_variance"}, p);
  finish(pass, space);
  pass.bytes = 2 * static_cast<double>(shape.size()) * size_of(problem.x.type);
  program.passes.push_back(std::move(pass));
  return true;
}

void add_training(PrimitiveProgram& program, BatchNormProblem const& problem, PrimitiveTarget const& target) {
  Shape const& shape = problem.x.shape();
  if (shape.size() > 0 && add_training_in_clusters(program, problem, target)) return;
  std::vector<StridedTensor> const tensors{strided("x", problem.x, argument_named(problem, "x")),
                                           strided_along("scale", problem.statistics, 1, {})};
  DataType const real = real_of(tensors);
  StridedTensor const mean = own_statistic(program, problem, "mean", real),
                      inverse = own_statistic(program, problem, "inverse", real);
  Reduction statistics;
  statistics.shape = shape;
  statistics.reduced = all_but_channels(shape);
  statistics.combine = 3;  // moments
  statistics.values = 3;
  statistics.terms = {"x[e]", "v0", {}};
  // The saved statistics may have a narrower type than the sums, so y is computed from the sums.
  statistics.last = {
      "let v = s2[e] / s0[e]; store(saved_variance, v); store(inverse, 1 / sqrt(v + epsilon)); "
      "store(mean, s1[e]); s1[e]",
      "saved_mean",
      {{"epsilon", problem.epsilon}}};
  statistics.inputs = {tensors[0]};
  statistics.outputs = {
      strided_along("saved_mean", problem.statistics, 1, argument_named(problem, "saved_mean")),
      strided_along("saved_variance", problem.statistics, 1, argument_named(problem, "saved_variance")), mean,
      inverse};
  add_reduction(program, statistics, target);
  std::size_t const reductions = program.passes.size();
  add_normalization_by_inverse(program, problem, mean, inverse, target);
  go_backwards(program, reductions);
}

void add_gradients(PrimitiveProgram& program, BatchNormProblem const& problem,
                   PrimitiveTarget const& target) {
  Shape const& shape = problem.x.shape();
  double const count = shape[1] == 0 ? 1 : static_cast<double>(shape.size() / shape[1]);
  std::vector<StridedTensor> const tensors{strided("x", problem.x, argument_named(problem, "x")),
                                           strided("dy", problem.y, argument_named(problem, "dy")),
                                           statistic(problem, "mean"), statistic(problem, "variance")};
  std::vector<StridedTensor> all = tensors;
  all.push_back(strided("dx", problem.dx, argument_named(problem, "dx")));
  DataType const real = real_of(all);
  StridedTensor const sum = own_statistic(program, problem, "sum", real),
                      sum_with_u = own_statistic(program, problem, "sum_with_u", real);
  bool const apart = channels_apart(problem, target);
  bool const activates = problem.has_activation();
  std::vector<StridedTensor> inputs = tensors;
  if (apart)
    inputs.back() = add_channel_value(program, problem, "inverse", "1 / sqrt(variance[e] + epsilon)",
                                      {statistic(problem, "variance")}, target);
  std::string const inverse = apart ? "inverse[e]" : "(1 / sqrt(variance[e] + epsilon))";
  if (activates)
    for (char const* name : {"scale", "bias"}) inputs.push_back(statistic(problem, name));
  // u, and the gradient g before the activation; z equals that of the forward pass up to rounding.
  std::string const before_activation = "let inverse = " + inverse +
                                        "; let centered = x[e] - mean[e]; let u = centered * inverse; "
                                        "let z = centered * (scale[e] * inverse) + bias[e]; "
                                        "let g = dy[e] * select(z > 0, 1, select(z <= 0, slope, z)); ";
  std::map<std::string, double> const constants{
      {"epsilon", problem.epsilon}, {"slope", problem.slope}, {"share", 1 / count}};
  Reduction sums;
  sums.shape = shape;
  sums.reduced = all_but_channels(shape);
  sums.values = 2;
  sums.terms = {activates ? before_activation + "store(v1, g * u); g"
                          : "store(v1, dy[e] * ((x[e] - mean[e]) * " + inverse + ")); dy[e]",
                "v0", constants};
  sums.last = {"store(dscale, s1[e]); store(sum_with_u, s1[e]); store(sum, s0[e]); s0[e]", "dbias", {}};
  sums.inputs = inputs;
  sums.outputs = {statistic(problem, "dbias"), statistic(problem, "dscale"), sum, sum_with_u};
  add_reduction(program, sums, target);
  Formula formula;
  formula.text =
      activates
          ? before_activation + "scale[e] * inverse * (g - sum[e] * share - u * (sum_with_u[e] * share))"
          : "let inverse = " + inverse +
                "; let u = (x[e] - mean[e]) * inverse; "
                "scale[e] * inverse * (dy[e] - sum[e] * share - u * (sum_with_u[e] * share))";
  formula.constants = constants;
  formula.result = "dx";
  if (!activates) inputs.push_back(statistic(problem, "scale"));
  for (StridedTensor const& more : {sum, sum_with_u}) inputs.push_back(more);
  std::size_t const reductions = program.passes.size();
  add_map(program, shape, formula, inputs, {all.back()}, target);
  go_backwards(program, reductions);
}

// Whether blocks can copy adjacent channels by 16 bytes to shared memory and back, and their planes have no
// runs of several elements, which a thread can load without it. The axis of the channels is the last one.
bool can_keep_planes(CollapsedSpace const& space, Index size, StridedTensor const& x, StridedTensor const& y,
                     PrimitiveTarget const& target) {
  DataType const type = x.description.type;
  if (type != y.description.type ||
      (type != DataType::f16 && type != DataType::bf16 && type != DataType::f32))
    return false;
  if (target.emulated ? size != 5 : size > 9 || !features_of(target.gpu).async_copy) return false;
  // Shorter planes are mostly overhead.
  SpaceAxis const &positions = space.positions.front(), &channels = space.positions.back();
  Index const plane = positions.extent, least = target.emulated ? 80 : 128;
  if (space.positions.size() < 2 || plane < least || plane > 1 << 13 || plane % 2 == 0) return false;
  if (positions.stride != std::vector<Index>{1, 1} || channels.stride != std::vector<Index>{plane, plane})
    return false;
  // The same place within 16 bytes in both.
  auto const places = Index{16} / size_of(type);
  for (StridedTensor const* tensor : {&x, &y})
    if (tensor->description.alignment < 16 || tensor->binding.first % places != 0) return false;
  return std::all_of(space.positions.begin(), space.positions.end(),
                     [&](SpaceAxis const& axis) { return (axis.stride[0] - axis.stride[1]) % places == 0; });
}

// Adds a pass whose blocks keep their channels in shared memory; returns false if there is too little of it,
// or if there would be fewer blocks than multiprocessors.
bool add_lrn_of_planes(PrimitiveProgram& program, PrimitivePass pass, CollapsedSpace space, Index size,
                       StridedTensor const& x, StridedTensor const& y, PrimitiveTarget const& target) {
  Index const plane = space.positions.front().extent;
  PrimitivePolicy policy;
  policy.width = 16 / size_of(x.description.type);
  policy.unroll = target.emulated ? 2 : 8;
  // Twice as many channels, if there is room, where more of their neighbors are read again.
  policy.groups = target.emulated || size > 5 ? 2 : 1;
  policy.window.columns = static_cast<int>(size);
  policy.window.rows = policy.step = static_cast<int>(plane);
  policy.columns_axis = 1;
  int const bytes = target.emulated ? 8 : size_of(x.description.type);
  Index const all = target.emulated ? 40 << 10 : target.gpu.shared_bytes_per_multiprocessor;
  policy.bulk = !target.emulated && features_of(target.gpu).bulk_copy;
  auto const bytes_of_block = [&] { return Index{lrn_shared_runs(policy)} * policy.width * bytes; };
  auto const is_resident = [&](int blocks) { return bytes_of_block() <= all / blocks - 1024; };
  constexpr int least_blocks = 3;  // their phases differ
  if (!is_resident(least_blocks) && !target.emulated) policy.groups = 1;
  if (!is_resident(least_blocks)) return false;
  pass.shared_bytes = static_cast<int>(bytes_of_block());
  if (!target.emulated) {
    if (pass.shared_bytes > target.gpu.shared_bytes_per_block) return false;
    // Few threads, since each computes addresses; the last of their positions may not exist.
    int const scale = is_resident(5) ? 1 : 2;
    auto const slots = [&](int threads) { return (plane + threads - 1) / threads * threads; };
    policy.threads = 128 * scale;
    for (int const threads : {160 * scale, 96 * scale})
      if (slots(threads) < slots(policy.threads)) policy.threads = threads;
  }

  // Blocks of adjacent channels run together, since they share some.
  std::rotate(space.positions.begin() + 1, space.positions.end() - 1, space.positions.end());
  Index const of_block = policy.unroll * policy.groups;
  divide(space.positions[1], of_block);
  fill_space(pass, space, {x}, {y}, policy.step, false);
  PrimitiveParameters& p = pass.parameters;
  policy.kept = p.policy.kept;
  p.policy = policy;
  for (std::vector<PassTensor>* tensors : {&pass.inputs, &pass.outputs}) (*tensors)[0].same = false;
  pass.blocks = p.positions;
  if (!target.emulated && pass.blocks < static_cast<unsigned>(target.gpu.multiprocessors)) return false;
  finish(pass, space);
  pass.bytes *= static_cast<double>(of_block);
  program.passes.push_back(std::move(pass));
  return true;
}

void add_lrn(PrimitiveProgram& program, LrnProblem const& problem, Shape const& shape,
             std::vector<StridedTensor> const& inputs, std::vector<StridedTensor> const& outputs,
             PrimitiveTarget const& target) {
  bool const forward = inputs.size() == 1;
  std::vector<StridedTensor const*> tensors;
  for (StridedTensor const& tensor : inputs) tensors.push_back(&tensor);
  tensors.push_back(&outputs[0]);
  CollapsedSpace space =
      collapse(shape, std::vector<bool>(static_cast<std::size_t>(shape.rank)), tensors, inputs.size(), {1});
  // Kernels expect the channels first if they are contiguous, and last otherwise.
  auto channels = space.positions.begin();
  while (channels != space.positions.end() &&
         !(channels->extent == shape[1] && channels->stride[0] == inputs[0].stride[1] &&
           channels->stride.back() == outputs[0].stride[1]))
    ++channels;
  bool innermost = false;
  if (channels == space.positions.end()) {  // a single channel
    space.positions.push_back({1, std::vector<Index>(tensors.size(), 0)});
  } else {
    innermost = channels == space.positions.begin() && space.positions.size() > 1;
    if (!innermost) std::rotate(channels, channels + 1, space.positions.end());
  }
  int const width = innermost ? 1 : std::min(4, run_width(tensors, space, false, target, 16));
  PrimitivePass pass;
  pass.family = PrimitiveFamily::lrn;
  std::vector<StridedTensor> all = inputs;
  all.push_back(outputs[0]);
  pass.real = real_of(all);
  PrimitiveParameters& p = pass.parameters;
  p.scalar[0] = problem.k;
  p.scalar[1] = problem.alpha / static_cast<double>(problem.size);
  p.scalar[2] = problem.beta;
  p.classes = static_cast<int>(shape[1]);
  if (forward && !innermost && can_keep_planes(space, problem.size, inputs[0], outputs[0], target) &&
      add_lrn_of_planes(program, pass, space, problem.size, inputs[0], outputs[0], target))
    return;
  int const last = static_cast<int>(space.positions.size()) - 1;
  bool const runs_along_channels = last == 0;
  // A thread computes several channels if their windows fit in registers: of y, groups of 16 elements, of
  // which the next one is loaded while one is computed.
  Index const own_width = runs_along_channels ? 1 : width;
  bool const in_groups = forward && (target.emulated || pass.real == DataType::f32);
  Index const of_group = target.emulated ? 2 : in_groups ? 16 / own_width : 8;
  int const groups = !in_groups ? 1 : target.emulated ? 2 : static_cast<int>(std::max<Index>(2, own_width));
  Index const of_thread = of_group * groups;
  bool const by_tiles =
      !innermost && !runs_along_channels && (target.emulated ? problem.size == 5 : problem.size <= 9);
  if (by_tiles) divide(space.positions.back(), of_thread);
  fill_space(pass, space, inputs, outputs, static_cast<int>(own_width), false);
  if (by_tiles) {
    p.policy.unroll = static_cast<int>(of_group);
    p.policy.groups = groups;
    p.policy.window.columns = static_cast<int>(problem.size);
    p.policy.whole = p.run_extent % own_width == 0;
    p.window[0].index_step = outputs[0].stride[1];
    if (forward && inputs[0].stride[1] == outputs[0].stride[1] && outputs[0].stride[1] <= 1 << 20)
      p.policy.step = static_cast<int>(outputs[0].stride[1]);
  }
  p.policy.columns_axis = innermost ? 0 : last;
  p.policy.operation = forward ? 0 : 1;
  p.window[0].taps = static_cast<int>(problem.size);
  p.window[0].tap_step = inputs[0].stride[1];
  p.window[0].pair_step = forward ? 0 : inputs[1].stride[1];
  pass.blocks = (p.positions + 255) / 256;
  finish(pass, space);
  if (by_tiles) pass.bytes *= static_cast<double>(of_thread);
  program.passes.push_back(std::move(pass));
}

}  // namespace

template <>
PrimitiveProgram lower(BatchNormProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  switch (problem.mode) {
    case BatchNormMode::inference: {
      add_normalization(program, problem, target);
      break;
    }
    case BatchNormMode::training: add_training(program, problem, target); break;
    case BatchNormMode::backward: add_gradients(program, problem, target); break;
  }
  return program;
}

template <>
PrimitiveProgram lower(LrnProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Shape const& shape = problem.x.shape();
  if (shape.size() == 0) return program;
  bool const forward = problem.direction == Direction::forward;
  std::vector<StridedTensor> inputs{strided("x", problem.x, argument_named(problem, "x"))};
  if (!forward) inputs.push_back(strided("dy", problem.y, argument_named(problem, "dy")));
  std::vector<StridedTensor> const outputs{forward
                                               ? strided("y", problem.y, argument_named(problem, "y"))
                                               : strided("dx", problem.dx, argument_named(problem, "dx"))};
  std::vector<bool> channels(static_cast<std::size_t>(shape.rank));
  channels[1] = true;
  if (shape[1] > Index{1} << 30)
    program.refusal =
        fmt::format("x has {} channels; this kernel supports at most {}", shape[1], Index{1} << 30);
  if (!program.refusal.empty()) return program;
  for (Piece const& part : pieces_of(shape, channels, 0x1p30 / static_cast<double>(shape[1])))
    add_lrn(program, problem, part.shape, part.of(inputs), part.of(outputs), target);
  return program;
}

}  // namespace cosmati::plan
