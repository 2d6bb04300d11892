// cosmati warm: compiles every kernel that the layers of a model need.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "cli/bench/timing.h"
#include "cli/command.h"
#include "cli/options/shared_options.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/compile_job.h"
#include "cli/verbs/run_job.h"
#include "src/jit/cache.h"
#include "src/jit/run_all.h"

namespace cosmati::cli {
namespace {

struct WarmRequest {
  std::string model, architecture, out;
  std::string tokens = "1:16384:1";
  Common common;
};

struct SizedProblem {
  CompileRequest const* request;
  std::vector<Index> size;
};

// The sources of the kernels of many problems, each once.
class Sources {
 public:
  void add(jit::Source source) {
    std::string key = source.name_expression + '\n' + source.text;
    std::lock_guard const lock(mutex_);
    sources_.try_emplace(std::move(key), std::move(source));
  }
  std::vector<jit::Source> take() {
    std::vector<jit::Source> sources;
    for (auto& entry : sources_) sources.push_back(std::move(entry.second));
    return sources;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, jit::Source> sources_;
};

std::vector<std::unique_ptr<CompileRequest>> requests_of(WarmRequest const& request, Suite const& model) {
  std::unique_ptr<Subject> const subject = make_subject(model.subject);
  if (!subject)
    throw Error(ErrorCode::bad_file,
                "the model " + model.name + ": unknown operation '" + model.subject + "'");
  CompileRequest common;
  common.subject = subject->clone();
  common.architecture = request.architecture;
  common.common = request.common;
  std::vector<std::unique_ptr<CompileRequest>> requests;
  for (ProblemOptions problem : model.problems) {
    for (std::string& word : problem)
      if (auto const at = word.find("TOKENS"); at != word.npos) word.replace(at, 6, request.tokens);
    requests.push_back(std::make_unique<CompileRequest>(with_options(common, problem)));
  }
  return requests;
}

void add_sources(SizedProblem const& problem, CompileTarget const& target, Sources& sources) {
  CompileRequest const& request = *problem.request;
  Job const job = made_job(*request.subject, problem.size, request.common);
  place(*job.task, request.placement);
  auto composition = job.task->compose(target.device, plan_options(*request.subject, request.common));
  if (!composition) return;  // nothing is compiled for it
  composition->passes.push_back(std::move(composition->source));
  for (jit::Source& source : composition->passes) {
    source.architecture = target.architecture;
    sources.add(std::move(source));
  }
}

void warm_job(WarmRequest const& given) {
  WarmRequest request = given;
  request.common.cache = request.out;
  check_options(request.common);
  if (request.model.empty())
    throw Error(ErrorCode::bad_request, "missing required option --model NAME|FILE, e.g. --model llama-8b");
  parse_range(request.tokens, "--tokens");  // a bad range is reported by the option's name
  Suite const model = find_model(request.model);
  CompileTarget const target = compile_target(request.common, request.architecture);
  auto const requests = requests_of(request, model);
  std::vector<SizedProblem> problems;
  for (auto const& one : requests)
    for (auto& size : requested_sizes(*one->subject, one->size))
      problems.push_back({one.get(), std::move(size)});

  Sources planned;
  int const threads = static_cast<int>(request.common.threads);
  double const planning = seconds_of([&] {
    jit::run_all(problems.size(), threads, [&](std::size_t i) { add_sources(problems[i], target, planned); });
  });
  std::vector<jit::Source> const sources = planned.take();
  std::atomic<long long> compiled = 0, bytes = 0;
  double const compiling = seconds_of([&] {
    jit::run_all(sources.size(), threads, [&](std::size_t i) {
      jit::Cubin const cubin = jit::kernel_cache().get(sources[i]);
      if (!cubin.cache_warning.empty()) throw Error(ErrorCode::bad_file, cubin.cache_warning);
      if (!cubin.from_cache) ++compiled;
      bytes += static_cast<long long>(cubin.image.size());
    });
  });

  std::string const folder = jit::kernel_cache().settings().folder;
  auto const kernels = static_cast<long long>(sources.size());
  if (request.common.json)
    return print_text(Record()
                          .add("verb", "warm")
                          .add("model", model.name)
                          .add("architecture", target.architecture)
                          .add("problems", problems.size())
                          .add("kernels", kernels)
                          .add("compiled", compiled.load())
                          .add("bytes", bytes.load())
                          .add("planning_seconds", planning)
                          .add("compiling_seconds", compiling)
                          .add("cache", folder)
                          .json());
  print_line(model.name + " for " + target.architecture + ": " + std::to_string(problems.size()) +
             " problems, planned in " + in_seconds(planning) + ", need " + std::to_string(kernels) +
             " kernels, " + in_bytes(static_cast<double>(bytes.load())) + "; " +
             std::to_string(compiled.load()) + " compiled in " + in_seconds(compiling) + ", " +
             std::to_string(kernels - compiled.load()) + " from the cache, " + folder);
}

}  // namespace

void add_warm_command(CLI::App& program) {
  Command const command =
      Command(program).add_subcommand("warm", "Compile every kernel that the layers of a model need");
  command.footer(
      "A model is a list of problems, as in bench/models; TOKENS in a size stands for each number of --tokens. "
      "Every problem is planned, and each kernel compiled once.\nThe folder can be copied, mounted read-only and "
      "named in COSMATI_CACHE_SHARED.\nExample: cosmati warm --model llama-8b --arch sm_90a --out kernels");
  auto const request = std::make_shared<WarmRequest>();
  command.when_read([command, request] {
    Options options(command);
    options.text("--model", request->model, "NAME|FILE", "llama-8b, or a list of problems")
        .text("--arch", request->architecture, "NAME",
              "target of NVRTC: sm_75, sm_80, sm_90a, ...; plans for a GPU of that architecture, or for "
              "--device-description")
        .text("--out", request->out, "DIR", "folder of compiled kernels (default: the cache)")
        .text("--tokens", request->tokens, "A:B:STEP", "numbers of tokens (default: 1:16384:1)");
    add_shared_options(options, request->common, "warm");
  });
  command.callback([request] { warm_job(*request); });
}

}  // namespace cosmati::cli
