// Gives each program to the executor of its backend.
#include "src/program/execute.h"

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "reference/epilogue.h"
#include "src/backend/cuda/executor.h"
#include "src/backend/emulator/executor.h"

namespace cosmati::program {
namespace {

// One entry for each member of a group.
using Epilogues = std::vector<reference::ElementEpilogue>;

Epilogues epilogues_of(ConvolutionProblem const& problem, ConvolutionProblem::Arguments const& arguments) {
  Epilogues one;
  one.emplace_back(problem.epilogue, epilogue::convolution_indices, arguments.operands, arguments.scalars,
                   arguments.stores);
  return one;
}
void add(Epilogues& all, GemmProblem const& problem, GemmProblem::Arguments const& arguments) {
  all.emplace_back(problem.epilogue, epilogue::gemm_indices, arguments.operands, arguments.scalars,
                   arguments.stores);
}
Epilogues epilogues_of(GemmProblem const& problem, GemmProblem::Arguments const& arguments) {
  Epilogues one;
  add(one, problem, arguments);
  return one;
}
Epilogues epilogues_of(GroupedGemmProblem const& group, GroupedGemmProblem::Arguments const& arguments) {
  Epilogues all;
  for (std::size_t i = 0; i < group.members.size(); ++i) add(all, group.members[i], arguments.members[i]);
  return all;
}

template <class Problem>
class ProgramKernel final : public Kernel<Problem> {
 public:
  ProgramKernel(Plan<Problem> const& plan, Program program)
      : problem_(plan.problem),
        emulated_(plan.device.backend == Backend::emulator),
        loaded_(load(std::move(program), plan.device)) {}

  void enqueue(typename Problem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    Run run = run_of(problem_, arguments, workspace);
    if (!emulated_) return loaded_->run(run, stream);
    Epilogues const epilogues = epilogues_of(problem_, arguments);
    std::vector<reference::ElementEpilogue const*> each;
    for (reference::ElementEpilogue const& one : epilogues) each.push_back(&one);
    run.epilogue = epilogues.data();
    run.member_epilogues = each;
    loaded_->run(run, stream);
  }

 private:
  Problem problem_;
  bool emulated_;  // its kernels evaluate the epilogue's expression
  std::unique_ptr<LoadedProgram> loaded_;
};

}  // namespace

std::unique_ptr<LoadedProgram> load(Program program, Device const& device) {
  return device.backend == Backend::emulator ? emulator::load(std::move(program), device.threads)
                                             : cuda::load(std::move(program), device.gpu);
}

template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare(Plan<Problem> const& plan, Program program) {
  return std::make_unique<ProgramKernel<Problem>>(plan, std::move(program));
}
template std::unique_ptr<Kernel<ConvolutionProblem>> prepare(Plan<ConvolutionProblem> const&, Program);
template std::unique_ptr<Kernel<GemmProblem>> prepare(Plan<GemmProblem> const&, Program);
template std::unique_ptr<Kernel<GroupedGemmProblem>> prepare(Plan<GroupedGemmProblem> const&, Program);

}  // namespace cosmati::program
