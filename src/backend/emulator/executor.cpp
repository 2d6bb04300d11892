// Runs the launches of a program with the kernels that its specifications name.
#include "src/backend/emulator/executor.h"

#include <deque>
#include <utility>
#include <variant>

#include "cosmati/arch/tensor_map.h"
#include "src/backend/emulator/catalogue.h"
#include "src/backend/emulator/fftw.h"

namespace cosmati::emulator {
namespace {

constexpr program::TensorMapEncoder encode{&encode_tensor_map, &encode_tensor_map};

struct FreeParameters {
  std::align_val_t alignment;
  void operator()(void* parameters) const { operator delete(parameters, alignment); }
};

class EmulatedProgram final : public program::LoadedProgram {
 public:
  EmulatedProgram(program::Program program, int threads) : program_(std::move(program)), threads_(threads) {
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

  void run(program::Run run, Stream) const override {
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

  program::Program program_;
  int threads_;
  std::vector<RunKernel> kernels_;  // one per kernel of the program
  std::deque<FftwPlan> transforms_;
  std::vector<Prepared<GemmProblem>> products_;
  std::vector<Line> constants_;
};

}  // namespace

std::unique_ptr<program::LoadedProgram> load(program::Program program, int host_threads) {
  return std::make_unique<EmulatedProgram>(std::move(program), host_threads);
}

}  // namespace cosmati::emulator
