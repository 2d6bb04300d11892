// The tensors of a group's members, one member after another, as slots.
#include "cli/operations/group_task.h"

#include "src/plan/gemm/program/program.h"

namespace cosmati::cli {
namespace {

std::optional<Composition> composition_of(Plan<GroupedGemmProblem> const& plan) {
  if (plan.device.backend != Backend::cuda || plan.recipe == GemmRecipe{}) return {};
  return cli::composition_of(plan::program_of(plan), plan.device.gpu, plan.kernel, policy_text(plan.recipe),
                             to_string(plan.recipe));
}

class PreparedGroup final : public PreparedTask {
 public:
  PreparedGroup(Prepared<GroupedGemmProblem> prepared, std::vector<double> scalars)
      : prepared_(std::move(prepared)), scalars_(std::move(scalars)) {
    auto const& plan = prepared_.plan();
    choice_ = choice_of(plan);
  }

  void run(std::span<void* const> pointers, void* workspace, Stream stream) const override {
    auto const& members = prepared_.plan().problem.members;
    std::vector<GemmProblem::Arguments> arguments(members.size());
    std::vector<void const*> const inputs(pointers.begin(), pointers.end());
    std::size_t next = 0;
    for (std::size_t g = 0; g < members.size(); ++g) {
      GemmProblem::visit_tensors(members[g], [&](char const*, Role, TensorDescription const&, auto member) {
        arguments[g].*member = pointers[next++];
      });
      std::size_t const operands = members[g].epilogue.operands.size();
      std::size_t const stores = members[g].epilogue.stores.size();
      arguments[g].operands = std::span(inputs).subspan(next, operands);
      arguments[g].stores = pointers.subspan(next + operands, stores);
      arguments[g].scalars = scalars_;
      next += operands + stores;
    }
    prepared_.run({arguments}, workspace, stream);
  }
  Choice const& choice() const override { return choice_; }
  std::unique_ptr<PreparedTask> without_kernel() const override {
    using Problem = GroupedGemmProblem;
    return std::make_unique<PreparedGroup>(
        Prepared<Problem>(prepared_.plan(), std::make_unique<NoKernel<Problem>>()), scalars_);
  }

 private:
  Prepared<GroupedGemmProblem> prepared_;
  std::vector<double> scalars_;
  Choice choice_;
};

class GroupTask final : public Task {
 public:
  GroupTask(GroupedGemmProblem problem, std::vector<double> scalars)
      : problem_(std::move(problem)), scalars_(std::move(scalars)) {}

  std::unique_ptr<Task> clone() const override { return std::make_unique<GroupTask>(*this); }

  void visit(Visit const& visit) override {
    for (std::size_t g = 0; g < problem_.members.size(); ++g) {
      auto const of_member = [&](std::string const& name, Role role, TensorDescription& description) {
        visit(name_in_group(name, g).c_str(), role, description);
      };
      GemmProblem& member = problem_.members[g];
      GemmProblem::visit_tensors(member, [&](char const* name, Role role, TensorDescription& description,
                                             auto) { of_member(name, role, description); });
      auto const& expression = member.epilogue.expression;
      for (std::size_t i = 0; i < member.epilogue.operands.size(); ++i)
        of_member("operand " + expression.operands()[i].name, Role::input, member.epilogue.operands[i]);
      for (std::size_t i = 0; i < member.epilogue.stores.size(); ++i)
        of_member("store " + expression.stores()[i].name, Role::output, member.epilogue.stores[i]);
    }
  }

  void make_scalars_absolute() override {
    for (double& scalar : scalars_) scalar = scalar < 0 ? -scalar : scalar;
  }
  void forget_accumulator() override {
    for (GemmProblem& member : problem_.members) {
      member.accumulator.reset();
      member.compute = ComputeMode::exact;
    }
  }

  std::unique_ptr<Task> accumulator_alone() const override {
    if (problem_.members.empty() || problem_.members.front().epilogue.expression == epilogue::Expression())
      return nullptr;
    auto alone = std::make_unique<GroupTask>(*this);
    for (GemmProblem& member : alone->problem_.members) {
      member.epilogue = {};
      member.c = {};
    }
    alone->scalars_.clear();
    return alone;
  }

  Choice plan(Device const& device, PlanOptions const& options) const override {
    return choice_of(make_plan(problem_, device, options));
  }
  std::unique_ptr<PreparedTask> prepare(Device const& device, PlanOptions const& options) const override {
    return std::make_unique<PreparedGroup>(cosmati::prepare(make_plan(problem_, device, options)), scalars_);
  }
  std::optional<Composition> compose(Device const& device, PlanOptions const& options) const override {
    return composition_of(make_plan(problem_, device, options));
  }
  Findings find(Device const&, FindOptions const&, bool) const override {
    throw Error(ErrorCode::bad_request,
                "find measures single products, not groups: specify the members' sizes individually");
  }

 private:
  GroupedGemmProblem problem_;
  std::vector<double> scalars_;
};

}  // namespace

std::string name_in_group(std::string const& name, std::size_t member) {
  return name + '[' + std::to_string(member) + ']';
}

std::unique_ptr<Task> make_group_task(GroupedGemmProblem problem, Notes const& notes,
                                      std::vector<double> scalars) {
  validate(problem);
  auto task = std::make_unique<GroupTask>(std::move(problem), std::move(scalars));
  task->notes = notes;
  return task;
}

std::vector<std::string> group_kernel_names(Backend backend) {
  return kernel_names<GroupedGemmProblem>(backend);
}

}  // namespace cosmati::cli
