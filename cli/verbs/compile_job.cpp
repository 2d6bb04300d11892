// The body of `cosmati compile`.
#include "cli/verbs/compile_job.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "cli/bench/timing.h"
#include "cli/networks/output_files.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/run_job.h"
#include "src/io/file.h"
#include "src/jit/cache.h"
#include "src/jit/nvrtc.h"
#include "src/jit/run_all.h"
#include "src/ops/architecture.h"

namespace cosmati::cli {
namespace {

struct Kernel {
  std::string problem, type;
  Composition composition;
  jit::Cubin cubin;
  int max_shared_bytes = 0;  // limit per block on the planned GPU
  double seconds = 0;        // to compile it, or to load it from the cache
  std::string failure = {};

  int shared_bytes() const { return cubin.static_shared_bytes + composition.shared_bytes; }
};

// Returns false if the kernel is not compiled at run time.
bool add_kernel(CompileTarget const& target, Task const& task, std::string const& type,
                PlanOptions const& options, std::vector<Kernel>& kernels) {
  std::optional<Composition> composition = task.compose(target.device, options);
  if (!composition) return false;
  composition->source.architecture = target.architecture;
  for (jit::Source& pass : composition->passes) pass.architecture = target.architecture;
  kernels.push_back(
      {task.notes.label, type, std::move(*composition), {}, target.device.gpu.shared_bytes_per_block});
  return true;
}

void add_kernels(CompileRequest const& request, CompileTarget const& target, Job const& job,
                 std::vector<Kernel>& kernels) {
  PlanOptions options = plan_options(*request.subject, request.common);
  std::string const type = name_of(job.task->slots().front().description.type);
  bool composed = false;
  if (request.each_kernel) {
    for (Considered const& entry : job.task->plan(target.device, options).considered) {
      options.kernel = entry.kernel;
      if (entry.refusal.empty()) composed |= add_kernel(target, *job.task, type, options, kernels);
    }
  } else if (!request.subject->kernels(Backend::cuda).empty()) {
    composed = add_kernel(target, *job.task, type, options, kernels);
  }
  if (!composed && request.count == not_given)
    throw Error(ErrorCode::unavailable,
                request.subject->name() + " has no kernels that are compiled for GPUs");
}

void add_sizes(CompileRequest const& request, std::vector<Kernel>& kernels) {
  CompileTarget const target = compile_target(request.common, request.architecture);
  Common common = request.common;
  for (std::string const& type : requested_types(*request.subject, common.types.all)) {
    common.types.all = type;
    for (auto const& size : requested_sizes(*request.subject, request.size)) {
      Job const job = made_job(*request.subject, size, common);
      place(*job.task, request.placement);
      add_kernels(request, target, job, kernels);
    }
  }
}

// Nothing is computed, so extents may be larger than verify's, except those of filters.
void enlarge(Subject const& subject, std::vector<Index>& size, nets::Random& random) {
  Index const factor = draw_from<Index>(random, {1, 1, 4, 16});
  auto const letters = subject.letters();
  for (std::size_t i = 0; i < size.size(); ++i)
    if (i >= letters.size() || std::string("rstd").find(letters[i]) == std::string::npos) size[i] *= factor;
}

void add_random(CompileRequest const& request, std::vector<Kernel>& kernels) {
  if (request.count < 1 || request.count > 1'000'000)
    throw Error(ErrorCode::bad_request,
                "--count " + std::to_string(request.count) + " is invalid; valid values: 1 to 1000000");
  CompileTarget const target = compile_target(request.common, request.architecture);
  nets::Random random(static_cast<unsigned long long>(request.common.seed), 1);
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    for (long long i = 0; i < request.count; ++i) {
      CompileRequest one = request.copy();
      one.common.types.all = type;
      auto size = one.subject->draw(random);
      enlarge(*one.subject, size, random);
      Placement placement = request.placement;
      if (draw_between(random, 0, 2) == 0) placement.gap += draw_between(random, 1, 8);
      if (placement.misalignment == 0) placement.misalignment = draw_from<Index>(random, {0, 0, 1, 2, 4, 8});
      Job const job = made_job(*one.subject, size, one.common);
      place(*job.task, placement);
      add_kernels(one, target, job, kernels);
    }
  }
}

void compile_kernel(Kernel& kernel) {
  jit::KernelCache& cache = jit::kernel_cache();
  kernel.seconds = seconds_of([&] { kernel.cubin = cache.get(kernel.composition.source); });
  if (!kernel.cubin.from_cache) kernel.seconds = kernel.cubin.compile_seconds;
  for (jit::Source const& pass : kernel.composition.passes) {
    jit::Cubin const cubin = cache.get(pass);
    kernel.cubin.local_bytes = std::max(kernel.cubin.local_bytes, cubin.local_bytes);
  }
  if (int const shared = kernel.shared_bytes(); shared > kernel.max_shared_bytes)
    throw Error(ErrorCode::wrong_result, kernel.composition.kernel + " needs " + std::to_string(shared) +
                                             " bytes of shared memory per block; the planned GPU has " +
                                             std::to_string(kernel.max_shared_bytes));
}

// A failure stops the others, unless the problems are random: then all are compiled, to find every failure.
void compile_kernels(CompileRequest const& request, std::vector<Kernel>& kernels) {
  jit::run_all(kernels.size(), static_cast<int>(request.common.threads), [&](std::size_t i) {
    try {
      compile_kernel(kernels[i]);
    } catch (Error const& error) {
      if (request.count == not_given || error.code() == ErrorCode::unavailable) throw;
      kernels[i].failure = error.what();
    }
  });
}

void check_all_compiled(std::vector<Kernel> const& kernels) {
  std::size_t failed = 0;
  for (Kernel const& kernel : kernels) {
    if (kernel.failure.empty()) continue;
    ++failed;
    print_warning(kernel.problem + ' ' + kernel.type + ": " + kernel.failure);
  }
  if (failed > 0)
    throw Error(ErrorCode::wrong_result, std::to_string(failed) + " of " + std::to_string(kernels.size()) +
                                             " planned kernels do not compile");
}

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
                 .add("shared_bytes", kernel.shared_bytes())
                 .add("compiler", kernel.cubin.compiler)
                 .add("cache_file", file.empty() ? Value() : Value(file))
                 .add("failure", kernel.failure.empty() ? Value() : Value(kernel.failure))
                 .json());
}

void print_table(std::vector<Kernel> const& kernels) {
  Table table({"problem", "type", "kernel", "policy", "seconds", "bytes", "registers", "local", "shared",
               "cache file"});
  for (Kernel const& kernel : kernels) {
    std::string const file = file_of(kernel);
    table.add({kernel.problem, kernel.type, kernel.composition.kernel, kernel.composition.policy,
               in_seconds(kernel.seconds), std::to_string(kernel.cubin.image.size()),
               std::to_string(kernel.cubin.registers), std::to_string(kernel.cubin.local_bytes),
               std::to_string(kernel.shared_bytes()),
               !kernel.failure.empty()   ? "failed"
               : kernel.cubin.from_cache ? "cached"
                                         : file.substr(file.rfind('/') + 1)});
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
  for (Kernel const& kernel : kernels)
    if (kernel.failure.empty()) (kernel.cubin.from_cache ? found : compiled).push_back(kernel.seconds);
  print_line(
      summary_of(compiled, "compiled") + summary_of(found, "from the cache") +
      kernels.front().composition.source.architecture + ", " + kernels.front().cubin.compiler +
      (jit::kernel_cache().settings().folder.empty() ? "" : ", " + jit::kernel_cache().settings().folder));
}

}  // namespace

CompileTarget compile_target(Common common, std::string const& architecture) {
  if (common.backend != "auto" && common.backend != "cuda")
    throw Error(ErrorCode::bad_request,
                "--backend " + common.backend + ": kernels are compiled only for the backend cuda");
  bool const described = !common.device_description.empty();
  if (!described) common.device_description = "h200";
  Device device = common.device_to_plan_for();
  if (architecture.empty()) return {device, architecture_of(device.gpu)};
  auto const [gpu, name] = target_of_architecture(architecture, jit::nvrtc_architectures());
  if (!described) {
    device.gpu = gpu;
  } else if (architecture_of(gpu) != architecture_of(device.gpu)) {
    throw Error(ErrorCode::bad_request, "--arch " + architecture + ": the GPU of --device-description " +
                                            common.device_description + " is of " +
                                            architecture_of(device.gpu));
  }
  return {device, name};
}

void compile_job(CompileRequest const& request) {
  check_options(request.common);
  std::vector<Kernel> kernels;
  add_sizes(request, kernels);
  for (Suite const& suite :
       requested_suites(request.subject->name(), request.suite, request.shapes, request.lines))
    for (ProblemOptions const& problem : suite.problems) add_sizes(with_options(request, problem), kernels);
  if (request.count != not_given) {
    if (!kernels.empty())
      throw Error(ErrorCode::bad_request, "--count " + std::to_string(request.count) +
                                              " generates random problems; remove the size and the suite");
    add_random(request, kernels);
  }
  if (kernels.empty())
    throw Error(ErrorCode::bad_request,
                "missing problem size; give a size, --suite NAME, --shapes FILE or --count N, e.g. " +
                    request.subject->size_example());
  check_files({{"--out", request.out}}, inputs_of(request.common, {{"--shapes", request.shapes}}));
  if (!request.out.empty() && kernels.size() > 1)
    throw Error(ErrorCode::bad_request, "--out " + request.out + " expects one kernel; the request has " +
                                            std::to_string(kernels.size()));
  compile_kernels(request, kernels);
  for (Kernel const& kernel : kernels) {
    if (kernel.cubin.local_bytes > 0)
      print_warning(kernel.problem + ' ' + kernel.type + ": " + kernel.composition.kernel +
                    (kernel.composition.policy.empty() ? "" : ", " + kernel.composition.policy) + ", uses " +
                    std::to_string(kernel.cubin.local_bytes) +
                    " bytes of local memory per thread (spilled registers or arrays)");
    if (!kernel.cubin.cache_warning.empty()) print_warning(kernel.cubin.cache_warning);
    if (request.common.json) print_json(request, kernel);
  }
  if (!request.out.empty()) {
    auto const& image = kernels.front().cubin.image;
    io::write_atomically(request.out, {reinterpret_cast<char const*>(image.data()), image.size()});
  }
  if (!request.common.json) {
    print_table(kernels);
    print_summary(kernels);
  }
  check_all_compiled(kernels);
}

}  // namespace cosmati::cli
