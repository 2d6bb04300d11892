// A primitive's program as a candidate of the backends cuda and emulator.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "src/candidates/candidates.h"
#include "src/plan/primitive/kernel.h"
#include "src/plan/primitive/lower.h"
#include "src/program/execute.h"

namespace cosmati::plan {

inline constexpr int max_run_arguments = 64;

inline program::Run run_with(std::span<void* const> arguments, RunValues const& values) {
  program::Run run;
  run.arguments = arguments;
  run.scalars = {values.scalar.data(), values.count};
  run.step = values.step;
  return run;
}

// Calls use(program::Run) with the pointers in the order that Binding::argument counts.
template <class Problem, class Use>
void with_run(Problem const& problem, typename Problem::Arguments const& arguments, Use const& use) {
  std::array<void*, max_run_arguments> pointers;
  std::size_t count = 0;
  Problem::visit_tensors(problem, [&](char const*, Role, TensorDescription const&, auto member) {
    pointers[count++] = const_cast<void*>(static_cast<void const*>(arguments.*member));
  });
  if constexpr (requires { arguments.operands; }) {
    for (std::size_t i = 0; i < problem.epilogue.operands.size(); ++i)
      pointers[count++] = const_cast<void*>(arguments.operands[i]);
    for (std::size_t i = 0; i < problem.epilogue.stores.size(); ++i) pointers[count++] = arguments.stores[i];
  }
  use(run_with({pointers.data(), count}, run_values(problem, arguments)));
}

// Checks the pointers of all tensors. Throws Error(bad_request) if one is missing or misaligned.
void check_pointers(OptimizerGroupProblem const& problem, OptimizerGroupProblem::Arguments const& arguments);
template <class Use>
void with_run(OptimizerGroupProblem const& problem, OptimizerGroupProblem::Arguments const& arguments,
              Use const& use) {
  static_assert(sizeof(OptimizerGroupProblem::Pointers) == 4 * sizeof(void*));
  use(run_with({reinterpret_cast<void* const*>(arguments.pointers.data()), 4 * arguments.pointers.size()},
               run_values(problem, arguments)));
}

template <class Problem>
void check_run(Problem const&, typename Problem::Arguments const&) {}
inline void check_run(OptimizerGroupProblem const& problem,
                      OptimizerGroupProblem::Arguments const& arguments) {
  check_pointers(problem, arguments);
}

// Labels that the host can read are checked as on the other host backends.
template <class Problem>
void check_labels_of(Problem const& problem, typename Problem::Arguments const& arguments) {
  if constexpr (requires { arguments.labels; }) {
    if (!problem.labels.present()) return;
    if constexpr (requires { problem.centres; })
      check_labels("rbf", problem.labels, arguments.labels, problem.centres.extent(0));
    else
      check_labels("cross-entropy", problem.labels, arguments.labels, problem.x.extent(1));
  }
}

template <class Problem>
class PrimitiveKernel final : public Kernel<Problem> {
 public:
  explicit PrimitiveKernel(Plan<Problem> const& plan)
      : problem_(plan.problem),
        emulated_(plan.device.backend == Backend::emulator),
        loaded_(program::load(launches_of(program_of(plan), plan.device.backend), plan.device)) {}
  void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    check_run(problem_, arguments);
    if (emulated_) check_labels_of(problem_, arguments);
    with_run(problem_, arguments, [&](program::Run run) {
      run.workspace = workspace;
      loaded_->run(run, stream);
    });
  }

 private:
  Problem problem_;
  bool emulated_;
  std::unique_ptr<program::LoadedProgram> loaded_;
};

template <class Problem>
std::vector<Candidate<Problem>> primitive_candidates() {
  Candidate<Problem> candidate{"composed", {}, nullptr, nullptr};
  candidate.prepare = [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
    return std::make_unique<PrimitiveKernel<Problem>>(plan);
  };
  candidate.offer = [](Problem const& problem, Device const& device, PlanOptions const& options) {
    Offer<Problem> offer;
    PrimitiveProgram const program = lower_within(options.max_workspace, problem, device);
    offer.refusal = program.refusal;
    if (offer.refusal.empty()) offer.refusal = options.policy.refusal();
    offer.workspace_bytes = program.workspace_bytes;
    offer.predicted_seconds = predict(program, device.gpu);
    offer.text = to_string(program);
    return offer;
  };
  return {candidate};
}

}  // namespace cosmati::plan

// COSMATI_PLAN for a problem whose program plan::lower makes.
#define COSMATI_PRIMITIVE(Problem, ...)                        \
  namespace cosmati {                                          \
  template <>                                                  \
  std::vector<Candidate<Problem>> gpu_list<Problem>(Backend) { \
    return plan::primitive_candidates<Problem>();              \
  }                                                            \
  }                                                            \
  COSMATI_PLAN(Problem, __VA_ARGS__)
