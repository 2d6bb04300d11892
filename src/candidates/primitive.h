// A primitive's program as a candidate of the backends cuda and emulator.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "src/backend/cuda/primitive_executor.h"
#include "src/backend/emulator/primitive.h"
#include "src/candidates/candidates.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::plan {

inline constexpr int max_run_arguments = 64;

// Calls use(PrimitiveRun) with the pointers in the order that Binding::argument counts.
template <class Problem, class Use>
void with_run(Problem const& problem, typename Problem::Arguments const& arguments, std::byte* workspace,
              Use const& use) {
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
  RunValues const values = run_values(problem, arguments);
  use(PrimitiveRun{{pointers.data(), count}, workspace, {values.scalar.data(), values.count}, values.step});
}

// Checks the pointers of all tensors. Throws Error(bad_request) if one is missing or misaligned.
void check_pointers(OptimizerGroupProblem const& problem, OptimizerGroupProblem::Arguments const& arguments);
template <class Use>
void with_run(OptimizerGroupProblem const& problem, OptimizerGroupProblem::Arguments const& arguments,
              std::byte* workspace, Use const& use) {
  static_assert(sizeof(OptimizerGroupProblem::Pointers) == 4 * sizeof(void*));
  RunValues const values = run_values(problem, arguments);
  use(PrimitiveRun{{reinterpret_cast<void* const*>(arguments.pointers.data()), 4 * arguments.pointers.size()},
                   workspace,
                   {values.scalar.data(), values.count},
                   values.step});
}

template <class Problem>
void check_run(Problem const&, typename Problem::Arguments const&) {}
inline void check_run(OptimizerGroupProblem const& problem,
                      OptimizerGroupProblem::Arguments const& arguments) {
  check_pointers(problem, arguments);
}

template <class Problem>
class CudaPrimitive final : public Kernel<Problem> {
 public:
  explicit CudaPrimitive(Plan<Problem> const& plan)
      : problem_(plan.problem), launches_(program_of(plan), plan.device.gpu) {}
  void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    check_run(problem_, arguments);
    with_run(problem_, arguments, workspace,
             [&](PrimitiveRun const& run) { launches_.enqueue(run, stream); });
  }

 private:
  Problem problem_;
  cuda::PrimitiveLaunches launches_;
};

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
class EmulatedPrimitive final : public HostKernel<Problem> {
 public:
  explicit EmulatedPrimitive(Plan<Problem> const& plan)
      : problem_(plan.problem), program_(program_of(plan)), threads_(plan.device.threads) {}
  void run(typename Problem::Arguments const& arguments, std::byte* workspace) const override {
    check_run(problem_, arguments);
    check_labels_of(problem_, arguments);
    with_run(problem_, arguments, workspace,
             [&](PrimitiveRun const& run) { runner_(program_, run, threads_); });
  }

 private:
  Problem problem_;
  PrimitiveProgram program_;
  int threads_;
  emulator::RunPrimitive runner_ = emulator::primitive_runner();
};

template <class Problem>
std::vector<Candidate<Problem>> primitive_candidates(Backend backend) {
  Candidate<Problem> candidate{"composed", {}, nullptr, nullptr};
  if (backend == Backend::cuda)
    candidate.prepare = [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
      return std::make_unique<CudaPrimitive<Problem>>(plan);
    };
  else
    candidate.prepare = [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
      return std::make_unique<EmulatedPrimitive<Problem>>(plan);
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
#define COSMATI_PRIMITIVE(Problem, ...)                                \
  namespace cosmati {                                                  \
  template <>                                                          \
  std::vector<Candidate<Problem>> gpu_list<Problem>(Backend backend) { \
    return plan::primitive_candidates<Problem>(backend);               \
  }                                                                    \
  }                                                                    \
  COSMATI_PLAN(Problem, __VA_ARGS__)
