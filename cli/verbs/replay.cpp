// cosmati replay: verifies or measures the calls that a process recorded.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>
#include <memory>

#include "cli/bench/bench_job.h"
#include "cli/networks/output_files.h"
#include "cli/operations/recorded_problem.h"
#include "cli/options/shared_options.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/commands.h"
#include "cli/verify/verify_job.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::cli {
namespace {

struct ReplayRequest {
  std::string file;
  bool verify = false, bench = false;
  std::string peers, fail_below, json_file;
  long long slices = not_given;
  double slice_seconds = no_number;
  bool hot = false;
  bool small_integers = false;
  double max_operations = no_number;
  Common common;
};

// One recorded problem, as a subject without options.
class Recorded final : public Subject {
 public:
  explicit Recorded(std::shared_ptr<RecordedCall const> call) : call_(std::move(call)) {}
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Recorded>(*this); }
  std::string name() const override { return call_->subject; }
  std::string about() const override { return "a recorded problem"; }
  std::string run_example() const override { return {}; }
  std::string size_example() const override { return "cosmati replay calls.jsonl"; }
  void add_parameters(Options&) override {}
  std::vector<FileOption> files() const override { return {}; }
  bool sums_products() const override { return true; }
  Inputs inputs_of_size(std::vector<Index> const&, TypeChoice const&) const override { return {}; }
  std::vector<std::vector<Index>> sizes_of_parameters() const override { return {{1}}; }
  std::vector<Index> draw(nets::Random&) override { return {1}; }
  Job job(Inputs const&, Common const&) const override {
    Job job;
    job.task = call_->task->clone();
    return job;
  }
  std::vector<std::string> kernels(Backend) const override { return {}; }

 private:
  std::shared_ptr<RecordedCall const> call_;
};

// The calls to replay.
struct Workload {
  std::vector<std::shared_ptr<RecordedCall const>> calls;
  std::vector<std::string> peers;  // peers of each call
  std::size_t left_out = 0;

  // A suite whose problems are the numbers of the calls.
  Suite suite(std::string const& file) const {
    Suite suite{std::filesystem::path(file).stem().string(), "", "", {}};
    for (std::size_t i = 0; i < calls.size(); ++i) suite.problems.push_back({std::to_string(i)});
    return suite;
  }
};

std::size_t number_of(ProblemOptions const& problem) {
  return static_cast<std::size_t>(parse_index(problem.front(), "a call"));
}

Common common_of(ReplayRequest const& request, RecordedCall const& call) {
  Common common = request.common;
  common.batch_invariant = common.batch_invariant || call.batch_invariant;
  common.types.all = name_of(call.task->clone()->slots().front().description.type);
  return common;
}

void say(ReplayRequest const& request, RecordedCall const& call, std::string const& what) {
  print_warning(request.file + ", line " + std::to_string(call.line) + ", " + what);
}

// CPU peers require the same type for all matrices, one that they support.
bool computes_type(std::string const& peer, Task const& task) {
  if (peer != "onednn" && peer != "openblas") return true;
  auto const slots = task.clone()->slots();
  DataType const type = slots.front().description.type;
  for (Slot const& slot : slots)
    if (slot.description.type != type) return false;
  return type == DataType::f32 || (type == DataType::f64 && peer == "openblas");
}

// The peers that support this call; the others are reported.
std::string peers_of(ReplayRequest const& request, RecordedCall const& call) {
  std::vector<std::string> able;
  if (request.peers.empty()) return {};
  for (std::string const& peer : split(request.peers, ',')) {
    if (peer == "torch") {  // it reports unsupported problems itself
      able.push_back(peer);
      continue;
    }
    ConvolutionProblem const* const convolution = call.task->convolution();
    bool const for_convolutions = peer == "cudnn";
    bool const computes = !computes_type(peer, *call.task) ? false
                          : for_convolutions               ? convolution != nullptr &&
                                                   convolution->direction != ConvolutionDirection::bias &&
                                                   !convolution->has_depth() &&
                                                   convolution->epilogue.expression == epilogue::Expression()
                                             : !call.task->notes.transposition.empty();
    if (computes)
      able.push_back(peer);
    else
      say(request, call,
          "without " + peer + ": it is timed only for " +
              (for_convolutions ? "convolutions of images without an epilogue"
                                : "single column-major matrix products without an epilogue; on the host, f32 "
                                  "(openblas also f64)"));
  }
  return join(able, ",");
}

Workload workload_of(ReplayRequest const& request, Device const& device) {
  Workload workload;
  auto const leave_out = [&](RecordedCall const& call, std::string const& why) {
    ++workload.left_out;
    say(request, call, "skipped: " + why);
  };
  for (RecordedCall& call : read_recorded_calls(request.file)) {
    if (call.task == nullptr) {
      leave_out(call, call.reason);
      continue;
    }
    std::string const often = call.runs == 1 ? ", once" : ", " + std::to_string(call.runs) + " times";
    call.task->notes.label = call.subject + ' ' + call.task->notes.label + often;
    try {
      (void)call.task->plan(device, common_of(request, call).plan_options());
    } catch (Error const& error) {
      leave_out(call, error.what());
      continue;
    }
    workload.peers.push_back(peers_of(request, call));
    workload.calls.push_back(std::make_shared<RecordedCall const>(std::move(call)));
  }
  if (workload.calls.empty())
    refuse(request.file + ": nothing can be replayed; all " + std::to_string(workload.left_out) +
           " lines were skipped");
  return workload;
}

void verify(ReplayRequest const& request, Workload const& workload) {
  VerifyRequest verification;
  verification.subject = std::make_unique<Recorded>(workload.calls.front());
  verification.common = request.common;
  verification.small_integers = request.small_integers;
  if (request.max_operations != no_number) verification.max_operations = request.max_operations;
  verification.workload = workload.suite(request.file);
  verify_job(verification, [&](VerifyRequest const& all, ProblemOptions const& problem) {
    VerifyRequest one = all.copy();
    auto const& call = workload.calls.at(number_of(problem));
    one.subject = std::make_unique<Recorded>(call);
    one.common = common_of(request, *call);
    return one;
  });
}

void bench(ReplayRequest const& request, Workload const& workload) {
  BenchRequest measurement;
  measurement.subject = std::make_unique<Recorded>(workload.calls.front());
  measurement.common = request.common;
  measurement.peers = request.peers;
  measurement.fail_below = request.fail_below;
  measurement.json_file = request.json_file;
  if (request.slices != not_given) measurement.slices = request.slices;
  if (request.slice_seconds != no_number) measurement.slice_seconds = request.slice_seconds;
  measurement.hot = request.hot;
  if (request.max_operations != no_number) measurement.max_verified = request.max_operations;
  measurement.workload = workload.suite(request.file);
  bench_job(measurement, [&](BenchRequest const& all, ProblemOptions const& problem) {
    BenchRequest one = all.copy();
    one.subject = std::make_unique<Recorded>(workload.calls.at(number_of(problem)));
    one.common = common_of(request, *workload.calls[number_of(problem)]);
    one.peers = workload.peers[number_of(problem)];
    return one;
  });
}

void check_mode(ReplayRequest const& request) {
  if (request.verify && request.bench) refuse("--verify and --bench are mutually exclusive");
  if (request.bench && request.small_integers) refuse("--integers requires --verify");
  if (!request.peers.empty())
    for (std::string const& peer : split(request.peers, ','))
      one_of(peer, {"onednn", "openblas", "cublaslt", "cudnn", "torch"}, "--peer");
  if (request.bench) return;
  std::vector<std::pair<char const*, bool>> const given{
      {"--peer", !request.peers.empty()},
      {"--fail-below", !request.fail_below.empty()},
      {"--slices", request.slices != not_given},
      {"--slice-seconds", request.slice_seconds != no_number},
      {"--hot", request.hot},
      {"--json FILE", !request.json_file.empty()}};
  for (auto const& [option, is_given] : given)
    if (is_given) refuse(std::string(option) + " is for --bench");
}

void replay(ReplayRequest const& request) {
  check_mode(request);
  if (request.file == "-")
    refuse(
        "FILE -: '-' is not accepted as a file; use /dev/stdin for the standard stream, ./- for a "
        "file named '-'");
  check_files({{"--json", request.json_file}}, inputs_of(request.common, {{"the argument", request.file}}));
  Workload const workload = workload_of(request, request.common.device_to_run_on());
  request.bench ? bench(request, workload) : verify(request, workload);
  if (request.common.json) return;
  std::string const all = std::to_string(workload.calls.size() + workload.left_out);
  print_line(std::to_string(workload.calls.size()) + " of " + all + " lines of " + request.file +
             " replayed" +
             (workload.left_out > 0 ? ", " + std::to_string(workload.left_out) + " skipped" : ""));
}

}  // namespace

void add_replay_command(CLI::App& program) {
  CLI::App* const command = program.add_subcommand("replay", "Verify or benchmark a recorded workload");
  command->footer(
      "COSMATI_RECORD=calls.jsonl in the environment of any program that uses this library adds a "
      "line for\neach problem it computed, with the number of runs, when the program "
      "exits.\nExample: COSMATI_RECORD=calls.jsonl cosmati run gemm --a A.npy --b B.npy --out "
      "D.npy\n         cosmati replay calls.jsonl --bench");
  auto const request = std::make_shared<ReplayRequest>();
  command->add_option("FILE", request->file, "file written through COSMATI_RECORD")->required();
  Options options(*command);
  options.group("Action")
      .flag("--verify", request->verify, "compare with the reference, as cosmati verify does (default)")
      .flag("--integers", request->small_integers, "with --verify: integer data from -3 to 3")
      .flag("--bench", request->bench, "measure, as cosmati bench does")
      .text("--peer", request->peers, "NAME,...",
            "with --bench: timed interleaved with ours, where it supports the problem")
      .text("--fail-below", request->fail_below, "RATIO",
            "with --bench: exit status 1 if the ratio to a peer is lower")
      .integer("--slices", request->slices, "with --bench: slices per participant (default: 15)")
      .number("--slice-seconds", request->slice_seconds, "with --bench: seconds per slice (default: 0.2)")
      .flag("--hot", request->hot, "with --bench: the same operands in each call")
      .number("--most-operations", request->max_operations,
              "larger problems are not verified (default: 2e9; with --bench 2e8)");
  add_shared_options(options, request->common, "replay", nullptr, &request->json_file);
  command->callback([request] { replay(*request); });
}

}  // namespace cosmati::cli
