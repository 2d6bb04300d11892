// Gives each program to the executor of its backend.
#include "src/program/execute.h"

#include "src/backend/cuda/executor.h"
#include "src/backend/emulator/executor.h"

namespace cosmati::program {

template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare(Plan<Problem> const& plan, Program program) {
  return plan.device.backend == Backend::emulator ? emulator::prepare_program(plan, std::move(program))
                                                  : cuda::prepare_program(plan, std::move(program));
}
template std::unique_ptr<Kernel<ConvolutionProblem>> prepare(Plan<ConvolutionProblem> const&, Program);
template std::unique_ptr<Kernel<GemmProblem>> prepare(Plan<GemmProblem> const&, Program);
template std::unique_ptr<Kernel<GroupedGemmProblem>> prepare(Plan<GroupedGemmProblem> const&, Program);

}  // namespace cosmati::program
