// The body of `cosmati tune`.
#include "cli/verbs/tune_job.h"

#include <set>

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
  explicit Session(TuneRequest const& request) : request_(request), regret_(request.fail_above) {}

  void tune(TuneRequest const& request, std::vector<Index> const& size, Common const& common,
            std::string const& suite) {
    Device const device = common.device_to_run_on();
    if (device.backend != Backend::cuda)
      throw Error(ErrorCode::unavailable,
                  std::string("tune measures kernels on a GPU and requires --backend cuda; "
                              "this is the backend ") +
                      name_of(device.backend));
    // Reports a file that cannot be appended to before anything is measured.
    if (!has_table_) table_of_file_ = io::tuning_to_add_to(request_.out);
    has_table_ = true;
    Job const job = made_job(*request.subject, size, common);
    Task& task = *job.task;
    place(task, request.placement);
    PlanOptions const options = plan_options(*request.subject, common);
    auto const choices = task.tuning_choices(device, options);
    auto const tuning_candidates = choices ? choices->tuning_candidates() : std::vector<TuningCandidate>();
    std::string const type = name_of(task.slots().front().description.type);
    if (tuning_candidates.empty()) return skip(task, type, "has nothing to choose");
    TuningLine const& own = tuning_candidates.front().line;
    if (!done_.insert(own.problems + own.gpu).second)
      return skip(task, type, "belongs to a class that has already been measured");
    TuningRules rules{request_.budget_seconds};
    rules.hot = request_.hot;
    rules.misalignment = request.placement.misalignment;
    rules.threads = static_cast<int>(common.threads);
    TuningResult result = tune_on_gpu(task, *choices, table_of_file_.find(own.problems, own.gpu), device,
                                      options, rules, static_cast<unsigned long long>(common.seed));
    TuningLine& line = result.chosen.line;
    line.measured = own.measured;
    line.driver = gpu_driver();
    line.version = version_text();
    line.time = time_now();
    failures_.insert(failures_.end(), result.failures.begin(), result.failures.end());
    TuningTable one;
    one.add(line);
    table_of_file_ = io::add_to_tuning(request_.out, one);
    regret_.add(task.notes.label + ' ' + type, result.ratio.median);
    report(task, type, suite, device, result);
  }

  void finish() const {
    if (!request_.common.json) {
      table_.print();
      print_line("Ratio: time of the plan / time of the choice, from medians of " +
                 std::to_string(TuningRules().slices) +
                 " interleaved slices; results verified on rows and columns. " + request_.out + " has " +
                 std::to_string(table_of_file_.size()) + " classes.");
      if (std::string const regret = regret_.text(); !regret.empty()) print_line(regret);
    }
    if (!failures_.empty()) throw Error(ErrorCode::wrong_result, join(failures_, "; "));
    regret_.check();
  }

 private:
  void skip(Task const& task, std::string const& type, std::string const& why) {
    if (!request_.common.json) table_.add({task.notes.label, type, why, "", "", "", "", ""});
  }

  void report(Task const& task, std::string const& type, std::string const& suite, Device const& device,
              TuningResult const& result) {
    TuningLine const& line = result.chosen.line;
    std::string const origin = result.has_kept ? "kept"
                               : line.policy == result.planned.line.policy &&
                                       line.kernel == result.planned.line.kernel &&
                                       line.splits == result.planned.line.splits
                                   ? "as planned"
                                   : "new";
    table_.add({task.notes.label, type, line.kernel + ' ' + result.chosen.recipe,
                in_seconds(line.planned_seconds), in_seconds(line.seconds),
                in_short(result.ratio.median) + " [" + in_short(result.ratio.low) + ", " +
                    in_short(result.ratio.high) + ']',
                std::to_string(result.measured.size()), origin});
    if (!request_.common.json) return;
    for (TuningCandidate const& one : result.measured)
      print_text(Record()
                     .add("verb", "tune")
                     .add("problem", task.notes.label)
                     .add("type", type)
                     .add("kernel", one.line.kernel)
                     .add("policy", one.line.policy)
                     .add("splits", one.line.splits)
                     .add("seconds", one.line.seconds)
                     .add("predicted_seconds", one.predicted_seconds)
                     .add("choice", "candidate")
                     .json());
    print_text(Record()
                   .add("verb", "tune")
                   .add("suite", suite.empty() ? Value() : Value(suite))
                   .add("subject", request_.subject->name())
                   .add("problem", task.notes.label)
                   .add("type", type)
                   .add("class", line.problems)
                   .add("gpu", device.gpu.name)
                   .add("driver", line.driver)
                   .add("version", line.version)
                   .add("time", line.time)
                   .add("kernel", line.kernel)
                   .add("policy", result.chosen.recipe)
                   .add("splits", line.splits)
                   .add("seconds", line.seconds)
                   .add("planned_kernel", result.planned.line.kernel)
                   .add("planned_policy", result.planned.recipe)
                   .add("planned_seconds", line.planned_seconds)
                   .add("ratio", result.ratio.median)
                   .add("ratio_low", result.ratio.low)
                   .add("ratio_high", result.ratio.high)
                   .add("timing", result.as_graphs ? "graphs" : "single_calls")
                   .add("choices", static_cast<long long>(result.measured.size()))
                   .add("choice", origin)
                   .add("spent_seconds", result.spent_seconds)
                   .add("wrong", result.failures)
                   .json());
  }

  TuneRequest const& request_;
  TuningTable table_of_file_;
  bool has_table_ = false;
  std::set<std::string> done_;
  Table table_{{"problem", "type", "chosen", "as planned", "as chosen", "ratio", "choices", "state"}};
  std::vector<std::string> failures_;
  Regret regret_;
};

void tune_all(Session& session, TuneRequest const& request, std::vector<std::vector<Index>> const& sizes,
              std::string const& suite) {
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    for (auto const& size : sizes) session.tune(request, size, common, suite);
  }
}

}  // namespace

TuneRequest TuneRequest::copy() const {
  TuneRequest other{subject->clone(), size,           suite, shapes,    out,
                    fail_above,       budget_seconds, hot,   placement, common};
  return other;
}

void tune_job(TuneRequest const& request, WithTuneOptions const& with_options) {
  check_options(request.common);
  if (request.out.empty())
    throw Error(ErrorCode::bad_request, "missing required option --out FILE, e.g. --out tuning.txt");
  if (!(request.budget_seconds >= 1 && request.budget_seconds <= 3600))
    throw Error(ErrorCode::bad_request, "--budget " + in_short(request.budget_seconds) +
                                            " is invalid; valid values: 1 to 3600 seconds");
  check_files({{"--out", request.out}}, inputs_of(request.common, {{"--shapes", request.shapes}}));
  Session session(request);
  auto const sizes = requested_sizes(*request.subject, request.size);
  std::vector<Suite> const suites = requested_suites(request.subject->name(), request.suite, request.shapes);
  if (sizes.empty() && suites.empty())
    throw Error(ErrorCode::bad_request,
                "missing problem size; give a size, --suite NAME or --shapes FILE, e.g. " +
                    request.subject->size_example());
  tune_all(session, request, sizes, "");
  for (Suite const& suite : suites)
    for (ProblemOptions const& problem : suite.problems) {
      TuneRequest const one = with_options(request, problem);
      tune_all(session, one, requested_sizes(*one.subject, one.size), suite.name);
    }
  session.finish();
}

}  // namespace cosmati::cli
