// Decides which tensors share a launch of an optimizer step.
#include <algorithm>

#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

// True if all runs are contiguous without gaps, as required of the members of a group.
bool is_dense(PrimitivePass const& pass) {
  PrimitiveParameters const& p = pass.parameters;
  auto const steps_by_runs = [&](std::size_t first, std::size_t count) {
    return std::all_of(p.tensor + first, p.tensor + first + count, [&](PrimitiveTensor const& tensor) {
      return p.positions <= 1 || tensor.stride[0] == p.policy.width;
    });
  };
  return pass.family == PrimitiveFamily::map && p.policy.kept == 1 && steps_by_runs(0, pass.inputs.size()) &&
         steps_by_runs(primitive_inputs, pass.outputs.size());
}

bool may_share(PrimitivePass const& a, PrimitivePass const& b) {
  auto const same = [](std::vector<PassTensor> const& x, std::vector<PassTensor> const& y) {
    return x.size() == y.size() &&
           std::equal(x.begin(), x.end(), y.begin(), [](PassTensor const& s, PassTensor const& t) {
             return s.type == t.type && s.same == t.same && s.binding.argument % 4 == t.binding.argument % 4;
           });
  };
  return a.members.size() < group_members && a.parameters.policy.width == b.parameters.policy.width &&
         a.parameters.policy.unroll == b.parameters.policy.unroll && same(a.inputs, b.inputs) &&
         same(a.outputs, b.outputs) && a.function.expression == b.function.expression &&
         std::equal(a.parameters.scalar, a.parameters.scalar + primitive_scalars, b.parameters.scalar);
}

}  // namespace

template <>
PrimitiveProgram lower(OptimizerGroupProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    PrimitiveProgram one = lower(problem.tensors[i], target);
    for (PrimitivePass& pass : one.passes) {
      for (auto* const tensors : {&pass.inputs, &pass.outputs})
        for (PassTensor& tensor : *tensors) tensor.binding.argument += 4 * static_cast<int>(i);
      if (one.passes.size() > 1 || !is_dense(pass)) {
        program.passes.push_back(std::move(pass));
        continue;
      }
      GroupMember const member{4 * static_cast<int>(i), pass.parameters.run_extent, pass.blocks};
      auto const group = std::find_if(
          program.passes.begin(), program.passes.end(),
          [&](PrimitivePass const& other) { return !other.members.empty() && may_share(other, pass); });
      if (group == program.passes.end()) {
        pass.members = {member};
        program.passes.push_back(std::move(pass));
      } else {
        group->members.push_back(member);
        group->parameters.policy.whole = group->parameters.policy.whole && pass.parameters.policy.whole;
        group->blocks += member.blocks;
        group->bytes += pass.bytes;
      }
    }
  }
  for (PrimitivePass& pass : program.passes)
    if (pass.members.size() > 1)
      pass.text = std::to_string(pass.members.size()) + " tensors of the kind " + pass.text;
  return program;
}

RunValues run_values(OptimizerGroupProblem const& problem,
                     OptimizerGroupProblem::Arguments const& arguments) {
  OptimizerProblem::Arguments one;
  one.rate = arguments.rate;
  one.step = arguments.step;
  return problem.tensors.empty() ? RunValues{} : run_values(problem.tensors.front(), one);
}

void bind(PrimitivePass const& pass, program::Run const& run, PrimitiveGroup& group) {
  bind(pass, run, group.common);
  group.members = static_cast<int>(pass.members.size());
  unsigned block = 0;
  int const first = pass.members.front().arguments;
  for (std::size_t m = 0; m < pass.members.size(); ++m) {
    GroupMember const& member = pass.members[m];
    group.first_block[m] = block;
    group.extent[m] = member.extent;
    block += member.blocks;
    auto const pointer = [&](PassTensor const& tensor) {
      return run.arguments[static_cast<std::size_t>(tensor.binding.argument - first + member.arguments)];
    };
    for (std::size_t i = 0; i < pass.inputs.size(); ++i) group.input[m][i] = pointer(pass.inputs[i]);
    for (std::size_t i = 0; i < pass.outputs.size(); ++i) group.output[m][i] = pointer(pass.outputs[i]);
  }
}

}  // namespace cosmati::plan
