// Gathering rows as a pass.
#include <algorithm>

#include "src/plan/primitive/lower.h"

namespace cosmati::plan {

template <>
PrimitiveProgram lower(GatherProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  Index const rows = problem.y.extent(0), features = problem.y.extent(1);
  if (rows * features == 0) return program;
  std::vector<StridedTensor> const inputs{strided("x", problem.x, argument_named(problem, "x"))},
      outputs{strided("y", problem.y, argument_named(problem, "y"))};
  CollapsedSpace space;
  space.positions = {{features, {1, 1}}, {rows, {inputs[0].stride[0], outputs[0].stride[0]}}};
  PrimitivePass pass;
  pass.family = PrimitiveFamily::gather;
  pass.real = real_of({inputs[0], outputs[0]});
  fill_space(pass, space, inputs, outputs, run_width({&inputs[0], &outputs[0]}, space, false, target), false);
  PrimitiveParameters& p = pass.parameters;
  if (rows * ((features + p.policy.width - 1) / p.policy.width) > Index{1} << 30) {
    program.refusal = "more than 2^30 runs; one launch of this kernel supports at most 2^30";
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

}  // namespace cosmati::plan
