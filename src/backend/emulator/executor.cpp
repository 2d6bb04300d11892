// Runs the launches of a program with the kernels that its specifications name.
#include "src/backend/emulator/executor.h"

#include <deque>
#include <utility>
#include <variant>

#include "cosmati/epilogue/parse.h"
#include "reference/epilogue.h"
#include "src/backend/emulator/catalogue.h"
#include "src/backend/emulator/fftw.h"

namespace cosmati::emulator {
namespace {

using Problem = ConvolutionProblem;

struct FreeParameters {
  std::align_val_t alignment;
  void operator()(void* parameters) const { operator delete(parameters, alignment); }
};

class EmulatedProgram final : public HostKernel<Problem> {
 public:
  EmulatedProgram(Plan<Problem> const& plan, program::Program program)
      : problem_(plan.problem), program_(std::move(program)), threads_(plan.device.threads) {
    for (program::KernelSpec const& kernel : program_.kernels) {
      kernels_.push_back(catalogue().kernel(kernel.key()));
      if (kernels_.back() == nullptr)
        throw Error(ErrorCode::unavailable, "the emulator's catalogue has no kernel " + kernel.key());
    }
    for (program::Transform const& of : program_.transforms)
      transforms_.emplace_back(of.rows, of.columns, of.count, of.real, of.inverse);
    for (Plan<GemmProblem> const& product : program_.products) products_.push_back(cosmati::prepare(product));
  }

  void run(Problem::Arguments const& arguments, std::byte* workspace) const override {
    reference::ElementEpilogue const epilogue(problem_.epilogue, epilogue::convolution_indices,
                                              arguments.operands, arguments.scalars, arguments.stores);
    program::Run run = program::run_of(problem_, arguments, workspace);
    run.epilogue = &epilogue;
    for (program::Step const& step : program_.steps)
      std::visit([&](auto const& one) { perform(one, run); }, step);
  }

 private:
  void perform(program::Launch const& launch, program::Run const& run) const {
    std::align_val_t const alignment{launch.alignment};
    std::unique_ptr<void, FreeParameters> const parameters(operator new(launch.room, alignment), {alignment});
    launch.fill(run, parameters.get());
    auto const along = [](Index blocks) { return static_cast<int>(blocks); };
    program::KernelSpec const& kernel = program_.kernels[launch.kernel];
    kernels_[launch.kernel]({along(launch.grid.x), along(launch.grid.y), along(launch.grid.z)},
                            static_cast<int>(kernel.threads), kernel.shared_bytes, parameters.get(),
                            threads_);
  }
  void perform(program::LibraryCall const& call, program::Run const& run) const {
    transforms_[call.transform].run(run.workspace + call.planes);
  }
  void perform(program::ProductCall const& call, program::Run const& run) const {
    products_[call.product].run(call.arguments(run.workspace), run.workspace);
  }

  Problem problem_;
  program::Program program_;
  int threads_;
  std::vector<RunKernel> kernels_;  // one per kernel of the program
  std::deque<FftwPlan> transforms_;
  std::vector<Prepared<GemmProblem>> products_;
};

}  // namespace

std::unique_ptr<Kernel<Problem>> prepare_program(Plan<Problem> const& plan, program::Program program) {
  return std::make_unique<EmulatedProgram>(plan, std::move(program));
}

}  // namespace cosmati::emulator
