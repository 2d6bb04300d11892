// Candidates for optimizer steps of many tensors.
#include <fmt/format.h>

#include <memory>

#include "src/candidates/candidates.h"
#include "src/candidates/primitive.h"

namespace cosmati {
namespace plan {

void check_pointers(OptimizerGroupProblem const& problem, OptimizerGroupProblem::Arguments const& arguments) {
  if (arguments.pointers.size() != problem.tensors.size())
    throw Error(ErrorCode::bad_request, fmt::format("pointers of {} tensors were given; the problem has {}",
                                                    arguments.pointers.size(), problem.tensors.size()));
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    OptimizerProblem const& tensor = problem.tensors[i];
    OptimizerGroupProblem::Pointers const& given = arguments.pointers[i];
    check_argument("parameter", tensor.parameter, given.parameter);
    check_argument("gradient", tensor.gradient, given.gradient);
    if (tensor.state.present()) check_argument("velocity", tensor.state, given.velocity);
    if (tensor.kind == OptimizerKind::adam) check_argument("second", tensor.state, given.second);
  }
}

namespace {

// Updates one tensor after another, each as a separate problem.
class EachTensor final : public Kernel<OptimizerGroupProblem> {
 public:
  explicit EachTensor(Plan<OptimizerGroupProblem> const& plan) : problem_(plan.problem) {
    for (OptimizerProblem const& tensor : problem_.tensors)
      steps_.push_back(prepare(make_plan(tensor, plan.device, {.max_workspace = 0})));
  }
  void enqueue(OptimizerGroupProblem::Arguments const& arguments, std::byte*, Stream stream) const override {
    check_pointers(problem_, arguments);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      OptimizerGroupProblem::Pointers const& given = arguments.pointers[i];
      steps_[i].run({.parameter = given.parameter,
                     .gradient = given.gradient,
                     .velocity = given.velocity,
                     .second = given.second,
                     .rate = arguments.rate,
                     .step = arguments.step},
                    nullptr, stream);
    }
  }

 private:
  OptimizerGroupProblem problem_;
  std::vector<Prepared<OptimizerProblem>> steps_;
};

Candidate<OptimizerGroupProblem> each_tensor_candidate() {
  return {"each-tensor",
          {},
          nullptr,
          [](Plan<OptimizerGroupProblem> const& plan) -> std::unique_ptr<Kernel<OptimizerGroupProblem>> {
            return std::make_unique<EachTensor>(plan);
          }};
}

}  // namespace
}  // namespace plan

template <>
std::vector<Candidate<OptimizerGroupProblem>> const& candidates<OptimizerGroupProblem>(Backend backend) {
  static std::vector<Candidate<OptimizerGroupProblem>> const host{plan::each_tensor_candidate()},
      composed = plan::primitive_candidates<OptimizerGroupProblem>();
  return backend == Backend::cuda || backend == Backend::emulator ? composed : host;
}
template Plan<OptimizerGroupProblem> make_plan(OptimizerGroupProblem const&, Device const&,
                                               PlanOptions const&);
template Prepared<OptimizerGroupProblem> prepare(Plan<OptimizerGroupProblem> const&);

}  // namespace cosmati
