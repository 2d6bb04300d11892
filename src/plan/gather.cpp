// Candidates for gathering rows: a generated kernel, and a host loop.
#include <algorithm>

#include "cosmati/ops/gather.h"
#include "src/backend/cpu/runtime/module.h"
#include "src/plan/candidates.h"
#include "src/plan/primitive/candidate.h"

namespace cosmati {

template <>
std::vector<Candidate<GatherProblem>> const& candidates<GatherProblem>(Backend backend) {
  static std::vector<Candidate<GatherProblem>> const host{reference_candidate<GatherProblem>()},
      cuda = plan::primitive_candidates<GatherProblem>(Backend::cuda),
      emulator = plan::primitive_candidates<GatherProblem>(Backend::emulator);
  return backend == Backend::cuda ? cuda : backend == Backend::emulator ? emulator : host;
}
template Plan<GatherProblem> make_plan(GatherProblem const&, Device const&, PlanOptions const&);
template Prepared<GatherProblem> prepare(Plan<GatherProblem> const&);

namespace plan {

PrimitiveProgram lower(GatherProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Index const rows = problem.y.extent(0), features = problem.y.extent(1);
  if (rows * features == 0) return program;
  std::vector<Seen> const inputs{seen("x", problem.x, argument_named(problem, "x"))},
      outputs{seen("y", problem.y, argument_named(problem, "y"))};
  CollapsedSpace space;
  space.positions = {{features, {1, 1}}, {rows, {inputs[0].stride[0], outputs[0].stride[0]}}};
  PrimitivePass pass;
  pass.family = PrimitiveFamily::gather;
  pass.real = real_of({inputs[0], outputs[0]});
  fill_space(pass, space, inputs, outputs, run_width({&inputs[0], &outputs[0]}, space, false, target), false);
  PrimitiveParameters& p = pass.parameters;
  if (rows * ((features + p.policy.width - 1) / p.policy.width) > Index{1} << 30) {
    program.refusal = "there are more than 2^30 runs; one launch of this kernel counts up to that";
    return program;
  }
  PrimitiveTensor& order = p.tensor[primitive_inputs - 1];
  order.type = DataType::s32;
  order.stride[1] = problem.order.layout.stride[0];
  pass.counts = {{argument_named(problem, "order"), DataType::s32, false}};
  Formula const formula{"scale * x[e] + shift", "y", {{"scale", problem.scale}, {"shift", problem.shift}}};
  pass.function = function_of(formula, {"x"}, {"y"}, p);
  pass.blocks = (p.positions + 255) / 256;
  finish(pass, space);
  program.passes.push_back(std::move(pass));
  return program;
}

}  // namespace plan
}  // namespace cosmati
