// Loads a program's kernels onto the device and launches them.
#include "src/backend/cuda/executor.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <variant>

#include "src/backend/cuda/driver/cufft.h"
#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/driver/resources.h"
#include "src/backend/cuda/driver/tensor_map.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/kernels.h"
#include "src/plan/gemm/program/program.h"

namespace cosmati::cuda {
namespace {

constexpr program::TensorMapEncoder encode{&encode_by_driver, &encode_by_driver};

class DeviceProgram final : public program::LoadedProgram {
 public:
  DeviceProgram(program::Program program, Gpu const& gpu)
      : program_(std::move(program)), ordinal_(gpu.ordinal) {
    std::vector<jit::Source> sources;
    for (program::KernelSpec const& kernel : program_.kernels) sources.push_back(kernel_source(kernel, gpu));
    functions_ = load_kernels(ordinal_, sources);
    for (std::size_t i = 0; i < functions_.size(); ++i)
      functions_[i].allow_shared_bytes(static_cast<int>(program_.kernels[i].shared_bytes));
    for (program::Step& step : program_.steps)
      if (auto* const launch = std::get_if<program::Launch>(&step)) limit(*launch);
    for (program::Transform const& of : program_.transforms)
      transforms_.emplace_back(ordinal_, of.rows, of.columns, of.count, of.real, of.inverse, of.work_bytes);
    for (Plan<GemmProblem> const& product : program_.products) products_.push_back(cosmati::prepare(product));
    write_constants();
  }

  void run(program::Run run, Stream stream) const override {
    if (program_.steps.empty()) return;
    Current const current(ordinal_);  // set once for all driver calls below
    run.constants = static_cast<std::byte const*>(constants_.data());
    run.encode = encode;
    for (program::Step const& step : program_.steps)
      std::visit([&](auto const& one) { enqueue(one, run, stream); }, step);
  }

 private:
  // Checks the size of the parameters, and makes resident launches as large as the device permits.
  void limit(program::Launch& launch) const {
    if (launch.room > program::max_room)
      throw Error(ErrorCode::bad_request, "the parameters of a launch take " + std::to_string(launch.room) +
                                              " bytes; at most " + std::to_string(program::max_room));
    if (launch.resident_cluster == 0) return;
    program::KernelSpec const& kernel = program_.kernels[launch.kernel];
    int const clusters = functions_[launch.kernel].clusters_at_once(
        launch.resident_cluster, static_cast<int>(kernel.threads), static_cast<int>(kernel.shared_bytes));
    launch.grid.x = std::min(launch.grid.x, Index{std::max(1, clusters)} * launch.resident_cluster);
  }
  void enqueue(program::Launch const& launch, program::Run const& run, Stream stream) const {
    alignas(128) std::byte parameters[program::max_room];
    launch.fill(run, parameters);
    auto const along = [](Index blocks) { return static_cast<unsigned>(blocks); };
    program::KernelSpec const& kernel = program_.kernels[launch.kernel];
    functions_[launch.kernel].launch({along(launch.grid.x), along(launch.grid.y), along(launch.grid.z)},
                                     kernel.threads, kernel.shared_bytes, parameters, launch.bytes,
                                     launch.alignment, stream,
                                     kernel.starts_early ? Start::early : Start::in_order);
  }
  void enqueue(program::LibraryCall const& call, program::Run const& run, Stream stream) const {
    transforms_[call.transform].run(run.workspace + call.planes, run.workspace + call.work, stream);
  }
  void enqueue(program::ProductCall const& call, program::Run const& run, Stream stream) const {
    products_[call.product].run(call.arguments(run.workspace), run.workspace, stream);
  }

  void write_constants() {
    program::Constants const& constants = program_.constants;
    if (constants.bytes == 0) return;
    Current const current(ordinal_);  // the driver encodes tensor maps only in a context
    std::vector<std::byte> bytes(constants.bytes);
    constants.write(encode, bytes.data());
    constants_ = DeviceBuffer(ordinal_, bytes.size());
    copy_to_device(ordinal_, constants_.data(), bytes.data(), bytes.size(), nullptr);
    wait(ordinal_, nullptr);
  }

  program::Program program_;
  int ordinal_;
  std::vector<Function> functions_;  // one per kernel of the program
  std::deque<CufftPlan> transforms_;
  std::vector<Prepared<GemmProblem>> products_;
  DeviceBuffer constants_;
};

}  // namespace

jit::Source kernel_source(program::KernelSpec const& kernel, Gpu const& gpu) {
  jit::Source source;
  source.text = program::text_of(kernel);
  source.name_expression = program::name_expression_of(kernel);
  source.architecture = architecture_of(gpu);
  source.label = kernel.label;
  keep_roundings(source, kernel.keeps_roundings);
  return source;
}

std::vector<jit::Source> kernel_sources(program::Program const& program, Gpu const& gpu) {
  std::vector<jit::Source> sources, of_products;
  for (Plan<GemmProblem> const& product : program.products)
    for (jit::Source& source : kernel_sources(plan::program_of(product), gpu))
      of_products.push_back(std::move(source));
  bool const multiplies = !of_products.empty();  // then the product's kernel computes the sums
  sources.push_back(multiplies ? of_products.front() : kernel_source(program.kernels[program.main], gpu));
  for (std::size_t i = 0; i < program.kernels.size(); ++i)
    if (multiplies || i != program.main) sources.push_back(kernel_source(program.kernels[i], gpu));
  if (multiplies) sources.insert(sources.end(), of_products.begin() + 1, of_products.end());
  return sources;
}

std::unique_ptr<program::LoadedProgram> load(program::Program program, Gpu const& gpu) {
  return std::make_unique<DeviceProgram>(std::move(program), gpu);
}

}  // namespace cosmati::cuda
