// The body of `cosmati compile`.
#include "cli/compile_job.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/output_files.h"
#include "cli/record.h"
#include "cli/run_job.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/timing.h"
#include "src/io/file.h"
#include "src/jit/cache.h"
#include "src/jit/run_all.h"

namespace cosmati::cli {
namespace {

struct Kernel {
  std::string problem, type;
  Composition composition;
  jit::Cubin cubin;
  double seconds = 0;  // to compile it, or to find it
};

struct DescribedArchitecture {
  char const* architecture;
  char const* gpu;
};
constexpr DescribedArchitecture described_architectures[] = {
    {"sm_75", "t4"}, {"sm_80", "a100"}, {"sm_89", "rtx4090"}, {"sm_90a", "h200"}};

// A GPU that is described, by --device-description or --arch.
Common with_description(CompileRequest const& request) {
  Common common = request.common;
  if (common.backend != "auto" && common.backend != "cuda")
    throw Error(ErrorCode::bad_request,
                "--backend " + common.backend + ": kernels are compiled for the backend cuda alone");
  if (common.device_description.empty()) {
    common.device_description = "h200";
    if (!request.architecture.empty()) {
      std::vector<std::string> names;
      for (DescribedArchitecture const& known : described_architectures) {
        names.emplace_back(known.architecture);
        if (request.architecture == known.architecture) common.device_description = known.gpu;
      }
      one_of(request.architecture, names, "--arch");
    }
  }
  return common;
}

void check_architecture(CompileRequest const& request, Kernel const& kernel) {
  std::string const& made = kernel.composition.source.architecture;
  if (!request.architecture.empty() && request.architecture != made)
    throw Error(ErrorCode::bad_request, "--arch " + request.architecture +
                                            ": the GPU of --device-description " +
                                            request.common.device_description + " is of " + made);
}

void add_kernels(CompileRequest const& request, std::vector<Kernel>& kernels) {
  Common common = with_description(request);
  Device const device = common.device_to_plan_for();
  PlanOptions const options = plan_options(*request.subject, common);
  for (std::string const& type : requested_types(*request.subject, common.types.all)) {
    common.types.all = type;
    for (auto const& size : requested_sizes(*request.subject, request.size)) {
      Job const job = made_job(*request.subject, size, common);
      place(*job.task, request.placement);
      std::optional<Composition> composition;
      if (!request.subject->kernels(Backend::cuda).empty()) composition = job.task->compose(device, options);
      if (!composition)
        throw Error(ErrorCode::unavailable,
                    request.subject->name() + " has no kernels that are compiled for GPUs");
      kernels.push_back({job.task->notes.label,
                         name_of(job.task->slots().front().description.type),
                         std::move(*composition),
                         {},
                         0});
      check_architecture(request, kernels.back());
    }
  }
}

void compile_kernels(std::vector<Kernel>& kernels, int threads) {
  jit::KernelCache& cache = jit::kernel_cache();
  jit::run_all(kernels.size(), threads, [&](std::size_t i) {
    Kernel& kernel = kernels[i];
    kernel.seconds = seconds_of([&] { kernel.cubin = cache.get(kernel.composition.source); });
    if (!kernel.cubin.from_cache) kernel.seconds = kernel.cubin.compile_seconds;
    for (jit::Source const& pass : kernel.composition.passes) (void)cache.get(pass);
  });
}

// "large 128x128x8": the rest is for --json.
std::string in_short_policy(std::string const& recipe) { return recipe.substr(0, recipe.find(',')); }

std::string file_of(Kernel const& kernel) {
  std::string const& folder = jit::kernel_cache().settings().folder;
  if (folder.empty() || !kernel.cubin.cache_warning.empty()) return {};
  std::string const file = folder + '/' + jit::entry_name(jit::key_of(kernel.composition.source));
  std::error_code error;
  return std::filesystem::exists(file, error) ? file : "";
}

void print_json(CompileRequest const& request, Kernel const& kernel) {
  std::string const file = file_of(kernel);
  print_text(Record()
                 .add("verb", "compile")
                 .add("subject", request.subject->name())
                 .add("problem", kernel.problem)
                 .add("type", kernel.type)
                 .add("architecture", kernel.composition.source.architecture)
                 .add("kernel", kernel.composition.kernel)
                 .add("policy", kernel.composition.recipe)
                 .add("cached", kernel.cubin.from_cache)
                 .add("seconds", kernel.seconds)
                 .add("compile_seconds", kernel.cubin.compile_seconds)
                 .add("bytes", static_cast<long long>(kernel.cubin.image.size()))
                 .add("registers", kernel.cubin.registers)
                 .add("local_bytes", kernel.cubin.local_bytes)
                 .add("shared_bytes", kernel.cubin.static_shared_bytes + kernel.composition.shared_bytes)
                 .add("compiler", kernel.cubin.compiler)
                 .add("cache_file", file.empty() ? Value() : Value(file))
                 .json());
}

void print_table(std::vector<Kernel> const& kernels) {
  Table table({"problem", "type", "kernel", "policy", "seconds", "bytes", "registers", "local", "shared",
               "cache file"});
  for (Kernel const& kernel : kernels) {
    std::string const file = file_of(kernel);
    table.add({kernel.problem, kernel.type, kernel.composition.kernel,
               in_short_policy(kernel.composition.recipe), in_seconds(kernel.seconds),
               std::to_string(kernel.cubin.image.size()), std::to_string(kernel.cubin.registers),
               std::to_string(kernel.cubin.local_bytes),
               std::to_string(kernel.cubin.static_shared_bytes + kernel.composition.shared_bytes),
               kernel.cubin.from_cache ? "cached" : file.substr(file.rfind('/') + 1)});
  }
  table.print();
}

std::string summary_of(std::vector<double> const& seconds, std::string const& verb) {
  if (seconds.empty()) return {};
  return std::to_string(seconds.size()) + ' ' + verb + ": median " + in_seconds(quantile(seconds, 0.5)) +
         ", largest " + in_seconds(quantile(seconds, 1)) + ". ";
}

void print_summary(std::vector<Kernel> const& kernels) {
  std::vector<double> compiled, found;
  for (Kernel const& kernel : kernels) (kernel.cubin.from_cache ? found : compiled).push_back(kernel.seconds);
  print_line(
      summary_of(compiled, "compiled") + summary_of(found, "from the cache") +
      kernels.front().composition.source.architecture + ", " + kernels.front().cubin.compiler +
      (jit::kernel_cache().settings().folder.empty() ? "" : ", " + jit::kernel_cache().settings().folder));
}

}  // namespace

void compile_job(CompileRequest const& request, WithCompileOptions const& with_options) {
  check_options(request.common);
  std::vector<Kernel> kernels;
  add_kernels(request, kernels);
  for (Suite const& suite : requested_suites(request.subject->name(), request.suite, request.shapes))
    for (ProblemOptions const& problem : suite.problems) add_kernels(with_options(request, problem), kernels);
  if (kernels.empty())
    throw Error(ErrorCode::bad_request,
                "a size, --suite NAME or --shapes FILE is needed, e.g. " + request.subject->size_example());
  check_files({{"--out", request.out}}, inputs_of(request.common, {{"--shapes", request.shapes}}));
  if (!request.out.empty() && kernels.size() > 1)
    throw Error(ErrorCode::bad_request,
                "--out " + request.out + " takes one kernel; these are " + std::to_string(kernels.size()));
  compile_kernels(kernels, static_cast<int>(request.common.threads));
  for (Kernel const& kernel : kernels) {
    if (kernel.cubin.local_bytes > 0)
      print_warning(kernel.problem + ' ' + kernel.type + ": " + kernel.composition.kernel + ", " +
                    in_short_policy(kernel.composition.recipe) + ", keeps " +
                    std::to_string(kernel.cubin.local_bytes) +
                    " bytes a thread in local memory: spilled registers or arrays");
    if (!kernel.cubin.cache_warning.empty()) print_warning(kernel.cubin.cache_warning);
    if (request.common.json) print_json(request, kernel);
  }
  if (!request.out.empty()) {
    auto const& image = kernels.front().cubin.image;
    io::write_atomically(request.out, {reinterpret_cast<char const*>(image.data()), image.size()});
  }
  if (request.common.json) return;
  print_table(kernels);
  print_summary(kernels);
}

}  // namespace cosmati::cli
