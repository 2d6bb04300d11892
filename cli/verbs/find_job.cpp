// The body of `cosmati find`.
#include "cli/verbs/find_job.h"

#include "cli/machine.h"
#include "cli/networks/output_files.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/regret.h"
#include "cli/verbs/run_job.h"
#include "src/io/tuning_file.h"

namespace cosmati::cli {
namespace {

class Session {
 public:
  explicit Session(FindRequest const& request) : request_(request), regret_(request.fail_above) {
    // Reports a file that cannot be appended to before anything is measured.
    check_files({{"--out", request.out}}, inputs_of(request.common, {{"--shapes", request.shapes}}));
    if (!request.out.empty()) io::tuning_to_add_to(request.out);
  }

  void find(FindRequest const& request, std::vector<Index> const& size, Common const& common,
            std::string const& suite) {
    Device const device = common.device_to_run_on();
    Job const job = made_job(*request.subject, size, common);
    Task& task = *job.task;
    place(task, request.placement);
    FindOptions options;
    options.plan = plan_options(*request.subject, common);
    options.seconds = request.seconds;
    options.reference = request.naive;
    Findings const findings = task.find(device, options, !request_.out.empty());
    if (findings.line) save(*findings.line, device);
    std::string const type = name_of(task.slots().front().description.type);
    for (Findings::Kernel const& one : findings.kernels)
      if (one.entry.kernel == findings.planned)
        regret_.add(task.notes.label + ' ' + type, one.seconds / findings.kernels.front().seconds);
    if (request_.common.json)
      print_records(findings, task, type, device, suite);
    else
      add_rows(findings, task, type);
  }

  void finish() const {
    if (!request_.common.json) {
      table_.print();
      if (std::string const regret = regret_.text(); !regret.empty()) print_line(regret);
      if (!request_.out.empty())
        print_line(request_.out + " has " + std::to_string(io::tuning_to_add_to(request_.out).size()) +
                   " classes.");
    }
    regret_.check();
  }

 private:
  void save(TuningLine line, Device const& device) {
    line.driver = device.backend == Backend::cuda ? gpu_driver() : processor_model();
    line.version = version_text();
    line.time = time_now();
    TuningTable one;
    one.add(line);
    io::add_to_tuning(request_.out, one);
  }

  void add_rows(Findings const& findings, Task const& task, std::string const& type) {
    double const best = findings.kernels.front().seconds;
    bool is_first = true;
    for (Findings::Kernel const& one : findings.kernels) {
      Considered const& entry = one.entry;
      table_.add({is_first ? task.notes.label : "", is_first ? type : "", entry.kernel,
                  in_seconds(one.seconds), in_short(one.seconds / best),
                  in_bytes(static_cast<double>(entry.workspace_bytes)),
                  entry.expected_error > 0 ? in_short(entry.expected_error) : "",
                  entry.kernel == findings.planned ? "planned" : "", entry.recipe});
      is_first = false;
    }
  }

  void print_records(Findings const& findings, Task const& task, std::string const& type,
                     Device const& device, std::string const& suite) const {
    long long rank = 0;
    for (Findings::Kernel const& one : findings.kernels) {
      Considered const& entry = one.entry;
      print_text(Record()
                     .add("verb", "find")
                     .add("suite", suite.empty() ? Value() : Value(suite))
                     .add("subject", request_.subject->name())
                     .add("problem", task.notes.label)
                     .add("type", type)
                     .add("backend", name_of(device.backend))
                     .add("threads", device.threads)
                     .add("gpu", device.gpu.name.empty() ? Value() : Value(device.gpu.name))
                     .add("class", findings.line ? Value(findings.line->problems) : Value())
                     .add("rank", ++rank)
                     .add("kernel", entry.kernel)
                     .add("recipe", entry.recipe.empty() ? Value() : Value(entry.recipe))
                     .add("seconds", one.seconds)
                     .add("predicted_seconds",
                          entry.predicted_seconds > 0 ? Value(entry.predicted_seconds) : Value())
                     .add("expected_error", entry.expected_error > 0 ? Value(entry.expected_error) : Value())
                     .add("workspace_bytes", static_cast<long long>(entry.workspace_bytes))
                     .add("planned", entry.kernel == findings.planned)
                     .json());
    }
  }

  FindRequest const& request_;
  Regret regret_;
  Table table_{{"problem", "type", "kernel", "time", "ratio", "workspace", "error", "plan", "how"}};
};

void find_all(Session& session, FindRequest const& request, std::vector<std::vector<Index>> const& sizes,
              std::string const& suite) {
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    for (auto const& size : sizes) session.find(request, size, common, suite);
  }
}

void check(FindRequest const& request) {
  check_options(request.common);
  if (!(request.seconds >= 1e-4 && request.seconds <= 60))
    throw Error(ErrorCode::bad_request, "--seconds " + in_short(request.seconds) +
                                            " is invalid; valid values: 0.0001 to 60 for each kernel");
  if (request.out.empty()) return;
  std::string const name = request.subject->name();
  if (name != "gemm" && name != "conv")
    throw Error(ErrorCode::bad_request,
                "--out " + request.out + ": a tuning file has lines for gemm and conv, not for " + name);
  std::string const kernel = plan_options(*request.subject, request.common).kernel;
  if (!kernel.empty() || !request.common.policy.empty())
    throw Error(ErrorCode::bad_request,
                "--out " + request.out +
                    ": a line names the fastest of all kernels; it cannot be determined with --kernel, "
                    "--algorithm or --policy");
}

}  // namespace

void find_job(FindRequest const& request, WithFindOptions const& with_options) {
  check(request);
  auto const sizes = requested_sizes(*request.subject, request.size);
  std::vector<Suite> const suites = requested_suites(request.subject->name(), request.suite, request.shapes);
  if (sizes.empty() && suites.empty())
    throw Error(ErrorCode::bad_request,
                "missing problem size; give a size, --suite NAME or --shapes FILE, e.g. " +
                    request.subject->size_example());
  Session session(request);
  find_all(session, request, sizes, "");
  for (Suite const& suite : suites)
    for (ProblemOptions const& problem : suite.problems) {
      FindRequest const one = with_options(request, problem);
      find_all(session, one, requested_sizes(*one.subject, one.size), suite.name);
    }
  session.finish();
}

}  // namespace cosmati::cli
