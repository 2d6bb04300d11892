// Each primitive as a program of passes.
#pragma once
#include <array>
#include <span>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/gather.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer_group.h"
#include "cosmati/ops/softmax.h"
#include "src/plan/primitive/builder.h"

namespace cosmati::plan {

// Specialized in one file per operation.
template <class Problem>
PrimitiveProgram lower(Problem const& problem, PrimitiveTarget const& target);

// The program whose reductions have the most parts that fit in this workspace; with one part if none fits.
// All limits from its workspace_bytes up to that of the next larger program give the same program.
template <class Problem>
PrimitiveProgram lower_within(std::size_t workspace_bytes, Problem const& problem, Device const& device) {
  PrimitiveTarget target{device.gpu, device.backend == Backend::emulator};
  PrimitiveProgram program = lower(problem, target);
  while (program.workspace_bytes > workspace_bytes && target.max_splits > 1) {
    target.max_splits /= 2;
    program = lower(problem, target);
  }
  return program;
}
template <class Problem>
PrimitiveProgram program_of(Plan<Problem> const& plan) {
  return lower_within(plan.workspace_bytes, plan.problem, plan.device);
}

// The kernel parameters other than tensors, from the arguments of a run.
struct RunValues {
  std::array<double, primitive_scalars> scalar{};
  std::size_t count = 0;
  unsigned long long step = 0;
};
template <class Problem>
RunValues run_values(Problem const&, typename Problem::Arguments const&) {
  return {};
}
RunValues run_values(DropoutProblem const& problem, DropoutProblem::Arguments const& arguments);
RunValues run_values(ElementwiseProblem const& problem, ElementwiseProblem::Arguments const& arguments);
RunValues run_values(OptimizerProblem const& problem, OptimizerProblem::Arguments const& arguments);
RunValues run_values(OptimizerGroupProblem const& problem, OptimizerGroupProblem::Arguments const& arguments);

// Returns the position of a tensor among the arguments: that of its name in visit_tensors.
template <class Problem>
Binding argument_named(Problem const& problem, char const* name) {
  int next = 0, found = -1;
  Problem::visit_tensors(problem, [&](char const* each, Role, TensorDescription const&, auto) {
    if (found < 0 && std::string(each) == name) found = next;
    ++next;
  });
  return argument(found);
}

}  // namespace cosmati::plan
