// Runs the launches of a program with the kernels that its specifications name.
#include "src/backend/emulator/executor.h"

#include <deque>
#include <utility>
#include <variant>

#include "cosmati/arch/tensor_map.h"
#include "cosmati/epilogue/parse.h"
#include "reference/epilogue.h"
#include "src/backend/emulator/catalogue.h"
#include "src/backend/emulator/fftw.h"

namespace cosmati::emulator {
namespace {

constexpr program::TensorMapEncoder encode{&encode_tensor_map, &encode_tensor_map};

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

struct FreeParameters {
  std::align_val_t alignment;
  void operator()(void* parameters) const { operator delete(parameters, alignment); }
};

template <class Problem>
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
    constants_.resize((program_.constants.bytes + sizeof(Line) - 1) / sizeof(Line));
    if (!constants_.empty()) program_.constants.write(encode, constants_.data()->byte);
  }

  void run(typename Problem::Arguments const& arguments, std::byte* workspace) const override {
    Epilogues const epilogues = epilogues_of(problem_, arguments);
    program::Run run = program::run_of(problem_, arguments, workspace);
    run.epilogue = epilogues.data();
    std::vector<reference::ElementEpilogue const*> each;
    for (reference::ElementEpilogue const& one : epilogues) each.push_back(&one);
    run.member_epilogues = each;
    run.encode = encode;
    if (!constants_.empty()) run.constants = constants_.data()->byte;
    for (program::Step const& step : program_.steps)
      std::visit([&](auto const& one) { perform(one, run); }, step);
  }

 private:
  struct alignas(alignof(arch::TensorMapOfDevice)) Line {
    std::byte byte[alignof(arch::TensorMapOfDevice)];
  };

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
  std::vector<Line> constants_;
};

}  // namespace

template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare_program(Plan<Problem> const& plan, program::Program program) {
  return std::make_unique<EmulatedProgram<Problem>>(plan, std::move(program));
}

template std::unique_ptr<Kernel<ConvolutionProblem>> prepare_program(Plan<ConvolutionProblem> const&,
                                                                     program::Program);
template std::unique_ptr<Kernel<GemmProblem>> prepare_program(Plan<GemmProblem> const&, program::Program);
template std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_program(Plan<GroupedGemmProblem> const&,
                                                                     program::Program);

}  // namespace cosmati::emulator
