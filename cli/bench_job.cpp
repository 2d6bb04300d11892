// The body of `cosmati bench`.
#include "cli/bench_job.h"

#include <ctime>
#include <map>

#include "cli/contest.h"
#include "cli/machine.h"
#include "cli/peak.h"
#include "cli/record.h"
#include "cli/run_job.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verification.h"
#include "src/io/file.h"

namespace cosmati::cli {
namespace {

constexpr double most_verified_operations = 2e8;  // the reference needs about a second for them

std::vector<PeerProblem> peer_problems(BenchRequest const& request, Task& task, Device const& device) {
  std::vector<PeerProblem> problems;
  if (request.peers.empty()) return problems;
  for (std::string const& peer : split(request.peers, ',')) {
    one_of(peer, {"onednn", "openblas", "cublaslt", "cudnn"}, "--peer");
    if (task.notes.transposition.empty())
      throw Error(ErrorCode::unavailable,
                  "peer " + peer + " is timed here for gemm only, not for " + request.subject->name());
    auto const slots = task.slots();
    TensorDescription const &a = slots[0].description, &b = slots[1].description;
    if (a.type != b.type)
      throw Error(ErrorCode::unavailable, "peer " + peer + " takes operands of one type, not " +
                                              name_of(a.type) + " and " + name_of(b.type));
    problems.push_back({peer, task.notes.transposition, a.type, a.extent(1), b.extent(2), a.extent(2),
                        a.extent(0), 1, device.threads});
  }
  return problems;
}

class Session {
 public:
  explicit Session(BenchRequest const& request) : request_(request) {
    if (!request.fail_below.empty()) {
      limit_ = parse_number(request.fail_below, "--fail-below");
      if (request.peers.empty())
        throw Error(ErrorCode::bad_request,
                    "--fail-below " + request.fail_below + " is a ratio to a peer: --peer NAME is needed");
    }
  }

  void measure(BenchRequest const& request, std::vector<Index> const& size, Common const& common) {
    Device const device = common.device();
    Job const job = made_job(*request.subject, size, common);
    Task& task = *job.task;
    PlanOptions const options = plan_options(*request.subject, common);
    auto const seed = static_cast<unsigned long long>(common.seed);
    Value verified;
    if (task.notes.operations <= most_verified_operations) {
      nets::Random random(seed, 1);
      Verdict const verdict = verify_task(task, device, options, false, random);
      verified = verdict.correct;
      if (!verdict.correct) failures_.push_back(task.notes.label + ": " + verdict.complaint);
    }
    ContestRules const rules{request_.slices, request_.slice_seconds, request_.hot};
    auto const result =
        hold_contest(task, device, options, rules, peer_problems(request_, task, device), seed);
    std::string const type = name_of(task.slots().front().description.type);
    if (result.peers.empty()) report(task, type, device, common, result, verified, nullptr);
    for (PeerResult const& peer : result.peers) {
      report(task, type, device, common, result, verified, &peer);
      if (!request_.fail_below.empty() && !(peer.ratio.median >= limit_))
        failures_.push_back(task.notes.label + ": " + in_short(peer.ratio.median) + " of " + peer.name +
                            ", below " + request_.fail_below);
    }
  }

  void finish() const {
    if (!request_.common.json) {
      table_.print();
      print_line(
          "Median, p5 and p95 of single calls; rate and ratio (peer's time / ours) by medians of the minima "
          "of " +
          std::to_string(request_.slices) + " slices of " + in_short(request_.slice_seconds) +
          " s, in turns with each peer; the interval holds the ratio's median with 95%.");
    }
    if (!failures_.empty()) throw Error(ErrorCode::wrong_result, join(failures_, "; "));
  }

 private:
  void report(Task const& task, std::string const& type, Device const& device, Common const& common,
              ContestResult const& result, Value const& verified, PeerResult const* peer) {
    double const peak = peak_of(parse_data_type(type), device.threads);
    double const rate = task.notes.operations / result.ours.best_slice * 1e-9;
    Record line;
    line.add("verb", "bench")
        .add("subject", request_.subject->name())
        .add("problem", task.notes.label)
        .add("type", type);
    line.add("backend", name_of(device.backend))
        .add("kernel", result.choice.kernel)
        .add("threads", device.threads);
    line.add("machine", this_processor().model)
        .add("commit", commit())
        .add("time", static_cast<long long>(std::time(nullptr)));
    line.add("seed", common.seed)
        .add("verified", verified)
        .add("slices", request_.slices)
        .add("slice_seconds", request_.slice_seconds);
    line.add("buffers", result.buffers).add("settled", result.settled).add("steady", result.steady);
    line.add("prepare_seconds", result.prepare_seconds).add("first_call_seconds", result.first_call_seconds);
    line.add("samples", result.ours.samples)
        .add("median_seconds", result.ours.median)
        .add("p5_seconds", result.ours.p5);
    line.add("p95_seconds", result.ours.p95).add("best_slice_seconds", result.ours.best_slice);
    line.add("operations", task.notes.operations)
        .add("bytes", result.bytes)
        .add("gflops", rate)
        .add("peak_gflops", peak > 0 ? Value(peak * 1e-9) : Value())
        .add("share_of_peak", peak > 0 ? Value(rate * 1e9 / peak) : Value());
    line.add("workspace_bytes", static_cast<long long>(result.choice.workspace_bytes));
    line.add("peer", peer != nullptr ? Value(peer->name) : Value());
    line.add("peer_version", peer != nullptr ? Value(peer->version) : Value());
    line.add("peer_seconds", peer != nullptr ? Value(peer->seconds) : Value());
    line.add("ratio", peer != nullptr ? Value(peer->ratio.median) : Value());
    line.add("ratio_low", peer != nullptr ? Value(peer->ratio.low) : Value());
    line.add("ratio_high", peer != nullptr ? Value(peer->ratio.high) : Value());
    if (!request_.json_file.empty()) io::append_to_file(request_.json_file, line.json());
    if (request_.common.json) print_text(line.json());
    std::string state = result.settled ? "" : " unsettled";
    if (!result.steady) state += " slowing";
    table_.add({task.notes.label, type, result.choice.kernel, in_seconds(result.ours.median),
                in_seconds(result.ours.p5), in_seconds(result.ours.p95), std::to_string(result.ours.samples),
                in_short(rate), peak > 0 ? in_short(100 * rate * 1e9 / peak) + '%' : "",
                in_seconds(result.prepare_seconds + result.first_call_seconds),
                peer != nullptr ? peer->name : "",
                peer != nullptr ? in_short(peer->ratio.median) + " [" + in_short(peer->ratio.low) + ", " +
                                      in_short(peer->ratio.high) + ']'
                                : "",
                (std::holds_alternative<std::monostate>(verified) ? "not verified"
                 : std::get<bool>(verified)                       ? "verified"
                                                                  : "WRONG") +
                    state});
  }

  // Measured once for each type.
  double peak_of(DataType type, int threads) {
    auto const known = peaks_.find(type);
    return known != peaks_.end() ? known->second : peaks_[type] = measured_peak(type, threads);
  }

  BenchRequest const& request_;
  std::map<DataType, double> peaks_;
  double limit_ = 0;
  Table table_{{"problem", "type", "kernel", "median", "p5", "p95", "samples", "GFLOP/s", "of peak",
                "first call", "peer", "ratio", "state"}};
  std::vector<std::string> failures_;
};

void measure_all(Session& session, BenchRequest const& request,
                 std::vector<std::vector<Index>> const& sizes) {
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    for (auto const& size : sizes) session.measure(request, size, common);
  }
}

}  // namespace

BenchRequest BenchRequest::copy() const {
  BenchRequest other{subject->clone(), size,   suite,         shapes, peers, json_file,
                     fail_below,       slices, slice_seconds, hot,    common};
  return other;
}

void bench_job(BenchRequest const& request, WithOptions const& with_options) {
  check_options(*request.subject, request.common);
  if (request.slices < 1 || request.slices > 100000)
    throw Error(ErrorCode::bad_request,
                "--slices " + std::to_string(request.slices) + ": legal are 1 to 100000");
  if (!(request.slice_seconds > 0 && request.slice_seconds <= 60))
    throw Error(ErrorCode::bad_request,
                "--slice-seconds " + in_short(request.slice_seconds) + ": legal is more than 0, up to 60");
  Session session(request);
  auto const sizes = requested_sizes(*request.subject, request.size);
  measure_all(session, request, sizes);
  std::vector<Suite> suites;
  if (!request.suite.empty()) suites.push_back(find_suite(request.suite));
  if (!request.shapes.empty()) suites.push_back(read_suite(request.shapes));
  if (sizes.empty() && suites.empty())
    throw Error(ErrorCode::bad_request,
                "a size, --suite NAME or --shapes FILE is needed, e.g. " + request.subject->size_example());
  for (Suite const& suite : suites) {
    if (suite.subject != request.subject->name())
      throw Error(ErrorCode::bad_request, "the suite " + suite.name + " is for " + suite.subject +
                                              ", not for " + request.subject->name());
    for (ProblemOptions const& problem : suite.problems) {
      BenchRequest const one = with_options(request, problem);
      measure_all(session, one, requested_sizes(*one.subject, one.size));
    }
  }
  session.finish();
}

}  // namespace cosmati::cli
