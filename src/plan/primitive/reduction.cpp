// Reductions: the assignment of terms to threads, and the number of blocks that share a result.
#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "src/plan/primitive/builder.h"

namespace cosmati::plan {
namespace {

constexpr int moments = 3, joined_moments = 4;  // Combine

Formula same_values(int values, char const* input, char const* output) {
  Formula formula;
  for (int i = 1; i < values; ++i) formula.text += fmt::format("store({}{}, {}{}[e]); ", output, i, input, i);
  formula.text += fmt::format("{}0[e]", input);
  formula.result = fmt::format("{}0", output);
  return formula;
}

std::vector<std::string> numbered(char const* name, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("{}{}", name, i));
  return names;
}

std::vector<std::string> names_of(std::vector<StridedTensor> const& tensors) {
  std::vector<std::string> names;
  for (StridedTensor const& tensor : tensors) names.push_back(tensor.name);
  return names;
}

struct Shares {
  int along;
  unsigned splits;
};

// Chooses enough threads to keep the memory busy, with adjacent elements in adjacent threads. `waves` is the
// number of blocks per multiprocessor for which combining their results pays off.
Shares shares_of(unsigned positions, unsigned terms, bool of_terms, int unroll, unsigned waves,
                 PrimitiveTarget const& target) {
  auto const multiprocessors = static_cast<unsigned>(std::max(1, target.gpu.multiprocessors));
  unsigned along;
  if (of_terms) {
    along = std::clamp(
        power_of_two_from((terms + static_cast<unsigned>(unroll) - 1) / static_cast<unsigned>(unroll)), 1u,
        primitive_threads);
    // A long row is reduced by a full block, a short one by a warp.
    if (along > 32 && positions / (primitive_threads / 32) > 8 * multiprocessors && terms <= 32u * 16)
      along = 32;
  } else {
    unsigned const across = std::clamp(power_of_two_from(positions), 1u, 32u);
    along = std::min(primitive_threads / across, power_of_two_from(terms));
    if (positions / primitive_threads > 8 * multiprocessors && terms <= 64) along = 1;
  }
  unsigned const across = primitive_threads / along, blocks = (positions + across - 1) / across;
  unsigned const wanted = waves * multiprocessors;
  unsigned const worth = terms / (along * static_cast<unsigned>(unroll) * 2);
  unsigned const splits = blocks >= wanted / 2 ? 1
                                               : std::clamp(std::min(wanted / std::max(blocks, 1u), worth),
                                                            1u, target.max_splits);
  return {static_cast<int>(along), splits};
}

// One pass, or one per part if an axis is too long.
struct Stage {
  CollapsedSpace space;
  std::vector<StridedTensor> inputs, outputs;
  Formula terms, last;
  int values, combine;
};

PrimitivePass pass_of(Stage const& stage, int width, bool of_terms, PrimitiveTarget const& target,
                      DataType real) {
  PrimitivePass pass;
  pass.family = PrimitiveFamily::reduce;
  pass.real = real;
  fill_space(pass, stage.space, stage.inputs, stage.outputs, width, of_terms);
  PrimitiveParameters& p = pass.parameters;
  // Inputs that are the same for all terms are loaded once.
  int bytes = 0;
  for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
    Index const* const steps = p.tensor[i].stride + p.policy.kept;
    if (std::all_of(steps, steps + p.policy.terms, [](Index step) { return step == 0; }))
      p.policy.fixed |= 1u << i;
    else
      bytes += width * size_of(stage.inputs[i].description.type);
  }
  // With four or more fixed inputs, registers suffice for two runs at a time.
  bool const few_registers = p.policy.fixed == 0 ? bytes >= 32 : std::popcount(p.policy.fixed) >= 4;
  p.policy.unroll = target.emulated || few_registers ? 2 : 4;
  p.policy.operation = stage.combine;
  p.policy.whole = p.run_extent % width == 0;
  pass.function = function_of(stage.terms, names_of(stage.inputs),
                              numbered("v", stage.combine == moments ? 1 : stage.values), p);
  pass.last = function_of(stage.last, numbered("s", stage.values), names_of(stage.outputs), p);
  return pass;
}

void size_launch(PrimitivePass& pass, Shares const& shares, PrimitiveTarget const& target,
                 CollapsedSpace const& space) {
  PrimitiveParameters& p = pass.parameters;
  p.policy.along = shares.along;
  unsigned const across = primitive_threads / static_cast<unsigned>(shares.along);
  pass.blocks = (p.positions + across - 1) / across;
  pass.splits = shares.splits;
  p.terms_of_split = (p.terms + shares.splits - 1) / shares.splits;
  int const results = p.policy.runs_of_terms ? 1 : p.policy.width;
  int const values = target.emulated ? 4 : pass.last.inputs;
  pass.shared_bytes =
      results * values * static_cast<int>(primitive_threads) * (target.emulated ? 8 : size_of(pass.real));
  finish(pass, space);
}

// Adds the pass that combines the values of `parts` parts.
void add_join(PrimitiveProgram& program, Stage const& last, Index parts, PrimitiveTarget const& target,
              DataType real) {
  PrimitivePass join = pass_of(last, 1, false, target, real);
  // Eight adjacent results fill a memory sector; with many parts that is enough. With very many, sectors that
  // are read by several blocks cost less than threads that wait for one load after another.
  unsigned const most = parts > 512 ? 2 : parts > 64 ? 8 : 32;
  unsigned const across = std::clamp(power_of_two_from(join.parameters.positions), 1u, most);
  size_launch(join,
              {static_cast<int>(
                   std::min(primitive_threads / across, power_of_two_from(static_cast<unsigned>(parts)))),
               1},
              target, last.space);
  program.passes.push_back(std::move(join));
}

// How the terms of a reduction are divided into launches: one, or parts of the slowest axis.
struct Parts {
  Index count = 1;
  Index extent = 1;  // of the slowest axis, per part
  Index terms = 1;   // per part
};

// Divides the terms if there are more than a launch supports.
Parts parts_of(CollapsedSpace const& space, PrimitiveProgram& program) {
  constexpr Index max_terms = Index{1} << 30;
  Parts parts;
  for (SpaceAxis const& axis : space.terms) parts.terms *= axis.extent;
  if (parts.terms <= max_terms) return parts;
  SpaceAxis const& slowest = space.terms.back();
  Index const others = parts.terms / slowest.extent;
  parts.extent = std::max<Index>(1, max_terms / std::max<Index>(others, 1) / 64 * 64);
  parts.count = (slowest.extent + parts.extent - 1) / parts.extent;
  parts.terms = others * parts.extent;
  if (parts.terms > max_terms)
    program.refusal = fmt::format(
        "{} terms along one of several axes that no single stride covers; a launch supports at most {}",
        parts.terms, max_terms);
  return parts;
}

// The stage that writes partial values to the workspace, ordered by value, then part, then sorted position.
Stage stage_of_partials(Stage const& stage, DataType stored, std::size_t room, Index whole_parts,
                        Index positions) {
  Stage first = stage;
  first.outputs.clear();
  first.last = same_values(stage.values, "s", "o");
  for (int v = 0; v < stage.values; ++v) {
    StridedTensor value{
        fmt::format("o{}", v),
        {},
        workspace_at(room + static_cast<std::size_t>(v * whole_parts * positions * size_of(stored))),
        {}};
    value.description.type = stored;
    first.outputs.push_back(value);
  }
  auto const with_partial_strides = [&](std::vector<SpaceAxis>& axes, bool of_positions) {
    std::size_t const inputs = stage.inputs.size();
    Index step = 1;
    for (SpaceAxis& axis : axes) {
      axis.stride.resize(inputs);
      axis.stride.resize(inputs + static_cast<std::size_t>(stage.values), of_positions ? step : 0);
      step *= axis.extent;
    }
  };
  with_partial_strides(first.space.positions, true);
  with_partial_strides(first.space.terms, false);
  return first;
}

// The stage that combines the partial values.
Stage stage_of_join(Stage const& stage, Stage const& partials, Index whole_parts, Index positions) {
  auto const values = static_cast<std::size_t>(stage.values);
  Stage last = stage;
  last.inputs = partials.outputs;
  last.terms = same_values(stage.values, "o", "v");
  if (stage.combine == moments) last.combine = joined_moments;
  last.space.terms = {{whole_parts, std::vector<Index>(values + stage.outputs.size(), 0)}};
  std::fill_n(last.space.terms[0].stride.begin(), stage.values, positions);
  Index step = 1;
  for (SpaceAxis& axis : last.space.positions) {
    std::vector<Index> strides(values, step);
    strides.insert(strides.end(), axis.stride.begin() + static_cast<std::ptrdiff_t>(stage.inputs.size()),
                   axis.stride.end());
    axis.stride = strides;
    step *= axis.extent;
  }
  return last;
}

void add_partials_and_join(PrimitiveProgram& program, Stage const& stage, Parts const& parts,
                           Shares const& shares, int width, bool of_terms, DataType real,
                           PrimitiveTarget const& target) {
  Index positions = 1;
  for (SpaceAxis const& axis : stage.space.positions) positions *= axis.extent;
  Index const whole_parts = parts.count * static_cast<Index>(shares.splits);
  std::size_t const room = reserve(program, positions * whole_parts * stage.values, real);
  Stage const first = stage_of_partials(stage, real, room, whole_parts, positions);
  bool const partial_runs_fit = positions * size_of(real) % 16 == 0;
  int const first_width = of_terms || partial_runs_fit ? width : 1;
  for (Index part = 0; part < parts.count; ++part) {
    Stage piece = first;
    if (parts.count > 1) {
      SpaceAxis const& slowest = first.space.terms.back();
      piece.space.terms.back().extent = std::min(parts.extent, slowest.extent - part * parts.extent);
      for (std::size_t i = 0; i < piece.inputs.size(); ++i)
        piece.inputs[i].binding.first += part * parts.extent * slowest.stride[i];
      for (StridedTensor& output : piece.outputs) output.binding.first += part * shares.splits * positions;
    }
    PrimitivePass one = pass_of(piece, first_width, of_terms, target, real);
    one.parameters.split_stride = positions;
    size_launch(one, shares, target, piece.space);
    program.passes.push_back(std::move(one));
  }
  add_join(program, stage_of_join(stage, first, whole_parts, positions), whole_parts, target, real);
}

void add_piece(PrimitiveProgram& program, Reduction const& r, PrimitiveTarget const& target) {
  std::vector<StridedTensor const*> tensors;
  for (StridedTensor const& tensor : r.inputs) tensors.push_back(&tensor);
  for (StridedTensor const& tensor : r.outputs) tensors.push_back(&tensor);
  std::vector<StridedTensor> all = r.inputs;
  all.insert(all.end(), r.outputs.begin(), r.outputs.end());
  DataType const real = real_of(all);
  Stage const stage{
      collapse(r.shape, r.reduced, tensors, 0), r.inputs, r.outputs, r.terms, r.last, r.values, r.combine};
  auto const stride_of = [&](std::vector<SpaceAxis> const& axes) {
    return axes.empty() || axes[0].extent == 1 || axes[0].stride[0] == 0 ? Index{1} << 62 : axes[0].stride[0];
  };
  bool const of_terms = stride_of(stage.space.terms) <= stride_of(stage.space.positions);
  // Registers and shared memory limit the number of results per thread.
  int width = run_width(tensors, stage.space, of_terms, target, of_terms || r.values == 1 ? 64 : 32);
  // The moments of eight results take 127 registers.
  if (!of_terms && r.combine == moments) width = std::min(width, 4);

  Parts const parts = parts_of(stage.space, program);
  if (!program.refusal.empty()) return;
  PrimitivePass pass = pass_of(stage, width, of_terms, target, real);
  // The moments of four results take 80 registers, so three blocks are resident; otherwise two or four are.
  unsigned const waves = !of_terms && r.combine == moments && width == 4 ? 6 : 8;
  auto const counted = static_cast<unsigned>(
      parts.count == 1 ? pass.parameters.terms : std::max<Index>(1, parts.terms / (of_terms ? width : 1)));
  PrimitivePolicy const& policy = pass.parameters.policy;
  // If fixed inputs reduce the number of runs at a time, that does not justify more parts.
  int const runs = target.emulated || policy.fixed == 0 ? policy.unroll : 4;
  Shares const shares = shares_of(pass.parameters.positions, counted, of_terms, runs, waves, target);
  if (parts.count > 1 || shares.splits > 1) {
    add_partials_and_join(program, stage, parts, shares, width, of_terms, real, target);
    return;
  }
  size_launch(pass, shares, target, stage.space);
  program.passes.push_back(std::move(pass));
}

}  // namespace

void add_reduction(PrimitiveProgram& program, Reduction const& r, PrimitiveTarget const& target) {
  for (int d = 0; d < r.shape.rank; ++d)
    if (!r.reduced[static_cast<std::size_t>(d)] && r.shape[d] == 0) return;
  for (Piece const& piece : pieces_of(r.shape, r.reduced)) {
    Reduction part = r;
    part.shape = piece.shape;
    part.inputs = piece.of(r.inputs);
    part.outputs = piece.of(r.outputs);
    add_piece(program, part, target);
  }
}

void add_joining_reduction(PrimitiveProgram& program, Reduction const& r, PrimitiveTarget const& target) {
  std::vector<StridedTensor> all = r.inputs;
  all.insert(all.end(), r.outputs.begin(), r.outputs.end());
  std::vector<StridedTensor const*> tensors;
  for (StridedTensor const& tensor : all) tensors.push_back(&tensor);
  Stage const stage{
      collapse(r.shape, r.reduced, tensors, 0), r.inputs, r.outputs, r.terms, r.last, r.values, r.combine};
  Index parts = 1;
  for (SpaceAxis const& axis : stage.space.terms) parts *= axis.extent;
  add_join(program, stage, parts, target, real_of(all));
}

}  // namespace cosmati::plan
