// JSON records and table rows of bench.
#include "cli/bench/bench_report.h"

#include <ctime>

#include "cli/bench/provenance.h"
#include "cli/machine.h"
#include "cli/output/table.h"

namespace cosmati::cli {
namespace {

double rate_of(Measurement const& measurement) {
  return measurement.task.notes.operations / measurement.result.ours.typical;
}

Value if_known(double number) { return number > 0 ? Value(number) : Value(); }
Value if_known(std::string const& text) { return text.empty() ? Value() : Value(text); }

Considered chosen_of(Choice const& choice) {
  for (Considered const& entry : choice.considered)
    if (entry.kernel == choice.kernel) return entry;
  return {};
}

void add_machine(Record& line, Measurement const& measurement) {
  Device const& device = measurement.device;
  bool const on_gpu = measurement.result.gpu.has_value();
  line.add("tuning", if_known(chosen_of(measurement.result.choice).note))
      .add("threads", device.threads)
      .add("machine", processor_model())
      .add("gpu", on_gpu ? Value(device.gpu.name) : Value())
      .add("driver", on_gpu ? Value(gpu_driver()) : Value())
      .add("commit", commit())
      .add("time", static_cast<long long>(std::time(nullptr)));
}

void add_times(Record& line, Measurement const& measurement) {
  InterleavedResult const& result = measurement.result;
  line.add("slices", measurement.rules.slices)
      .add("slice_seconds", measurement.rules.slice_seconds)
      .add("buffers", result.buffers)
      .add("settled", result.settled)
      .add("steady", result.steady)
      .add("timing", !result.gpu                      ? Value()
                     : result.gpu->calls_in_graph > 0 ? Value("graphs")
                                                      : Value("single_calls"))
      .add("calls_in_graph",
           result.gpu && result.gpu->calls_in_graph > 0 ? Value(result.gpu->calls_in_graph) : Value())
      .add("capture_failure", result.gpu ? if_known(result.gpu->capture_failure) : Value())
      .add("throttled", result.gpu ? Value(result.gpu->throttled) : Value())
      .add("clock_share", result.gpu ? Value(result.gpu->clock_share) : Value())
      .add("prepare_seconds", result.prepare_seconds)
      .add("first_call_seconds", result.first_call_seconds)
      .add("host_seconds", result.host_seconds ? Value(*result.host_seconds) : Value())
      .add("samples", result.ours.samples)
      .add("median_seconds", result.ours.median)
      .add("p5_seconds", result.ours.p5)
      .add("p95_seconds", result.ours.p95)
      .add("best_slice_seconds", result.ours.best_slice);
}

void add_rates(Record& line, Measurement const& measurement) {
  double const rate = rate_of(measurement), peak = measurement.ceilings.operations;
  double const copy = measurement.ceilings.bytes;
  auto const bytes = static_cast<double>(measurement.result.bytes);
  line.add("operations", measurement.task.notes.operations)
      .add("bytes", measurement.result.bytes)
      .add("gflops", rate * 1e-9)
      .add("peak", if_known(measurement.ceilings.name))
      .add("peak_gflops", if_known(peak * 1e-9))
      .add("peak_burst_gflops", if_known(measurement.ceilings.burst * 1e-9))
      .add("peak_sustained_gflops", if_known(measurement.ceilings.sustained * 1e-9))
      .add("share_of_peak", peak > 0 ? Value(rate / peak) : Value())
      .add("copy_bytes_per_second", if_known(copy))
      .add("share_of_copy", copy > 0 ? Value(bytes / measurement.result.ours.typical / copy) : Value())
      .add("workspace_bytes", static_cast<long long>(measurement.result.choice.workspace_bytes));
}

void add_peer(Record& line, PeerResult const* peer) {
  bool const timed = peer != nullptr && peer->refusal.empty();
  bool const chose = timed && peer->algorithms > 0;
  auto const value = [](bool known, auto number) { return known ? Value(number) : Value(); };
  line.add("peer", peer != nullptr ? Value(peer->name) : Value())
      .add("peer_version", peer != nullptr ? Value(peer->version) : Value())
      .add("peer_seconds", timed ? Value(peer->seconds) : Value())
      .add("ratio", timed ? Value(peer->ratio.median) : Value())
      .add("ratio_low", timed ? Value(peer->ratio.low) : Value())
      .add("ratio_high", timed ? Value(peer->ratio.high) : Value())
      .add("peer_refusal", peer != nullptr ? if_known(peer->refusal) : Value())
      .add("peer_algorithms", value(chose, static_cast<long long>(chose ? peer->algorithms : 0)))
      .add("peer_tried", timed && peer->tried > 0 ? Value(static_cast<long long>(peer->tried)) : Value())
      .add("peer_chosen", value(chose, static_cast<long long>(chose ? peer->chosen : 0)))
      .add("peer_algorithm", timed ? if_known(peer->algorithm.text()) : Value())
      .add("peer_interface", timed ? if_known(peer->algorithm.interface) : Value())
      .add("peer_engine", timed ? if_known(peer->algorithm.engine) : Value())
      .add("peer_layout", timed ? if_known(peer->algorithm.layout) : Value())
      .add("peer_host_seconds", chose ? if_known(peer->host_seconds) : Value())
      .add("peer_workspace_bytes", value(chose, chose ? peer->workspace_bytes : 0LL))
      .add("peer_first_seconds", value(chose, chose ? peer->first_seconds : 0.0))
      .add("first_ratio", value(chose, chose ? peer->first_ratio.median : 0.0))
      .add("first_ratio_low", value(chose, chose ? peer->first_ratio.low : 0.0))
      .add("first_ratio_high", value(chose, chose ? peer->first_ratio.high : 0.0))
      .add("peer_verified", timed && peer->sample ? Value(peer->sample->correct) : Value());
}

std::string in_interval(Interval const& ratio) {
  return in_short(ratio.median) + " [" + in_short(ratio.low) + ", " + in_short(ratio.high) + ']';
}

std::string state_of(Measurement const& measurement, PeerResult const* peer) {
  InterleavedResult const& result = measurement.result;
  std::string state = !measurement.verdict           ? "not verified"
                      : measurement.verdict->correct ? "verified"
                                                     : "FAILED";
  if (!result.settled) state += " unsettled";
  if (!result.steady) state += " slowing";
  if (result.gpu && result.gpu->throttled)
    state += " throttled to " + in_short(100 * result.gpu->clock_share) + '%';
  if (result.gpu && !result.gpu->capture_failure.empty())
    state += ", single calls, since one cannot be captured (" + result.gpu->capture_failure + ')';
  if (peer != nullptr && peer->sample && !peer->sample->correct) state += ", the peer's result differs";
  return state;
}

}  // namespace

Record digest_record(Provenance const& what, Task const& task, Device const& device, Choice const& choice) {
  bool const is_product = !task.notes.transposition.empty();
  return Record()
      .add("verb", "bench")
      .add("suite", if_known(what.suite))
      .add("subject", what.subject)
      .add("problem", task.notes.label)
      .add("type", what.type)
      .add("accumulator", is_product ? Value(std::string(name_of(task.notes.sum))) : Value())
      .add("backend", name_of(device.backend))
      .add("kernel", choice.kernel)
      .add("policy", if_known(chosen_of(choice).recipe))
      .add("digest", if_known(what.digest))
      .add("command", command_text());
}

Record bench_record(Measurement const& measurement, PeerResult const* peer) {
  std::optional<Verdict> const& verdict = measurement.verdict;
  Record line =
      digest_record(measurement.what, measurement.task, measurement.device, measurement.result.choice);
  add_machine(line, measurement);
  line.add("seed", measurement.seed)
      .add("verified", verdict ? Value(verdict->correct) : Value())
      .add("verified_elements", verdict ? Value(static_cast<long long>(verdict->elements)) : Value())
      .add("max_error_of_bound", verdict ? Value(verdict->share_of_bound) : Value());
  add_times(line, measurement);
  add_rates(line, measurement);
  add_peer(line, peer);
  return line;
}

Record trial_record(Measurement const& measurement, PeerResult const& peer, PeerTrial const& trial) {
  Record line;
  line.add("verb", "peer-log")
      .add("subject", measurement.what.subject)
      .add("problem", measurement.task.notes.label)
      .add("type", measurement.what.type)
      .add("peer", peer.name)
      .add("peer_version", peer.version)
      .add("interface", if_known(trial.algorithm.interface))
      .add("engine", if_known(trial.algorithm.engine))
      .add("layout", if_known(trial.algorithm.layout))
      .add("workspace_bytes", static_cast<long long>(trial.workspace_bytes))
      .add("tried_seconds", if_known(trial.tried_seconds))
      .add("measured_seconds", if_known(trial.measured_seconds))
      .add("reason", if_known(trial.reason));
  return line;
}

std::vector<std::string> bench_heads() {
  return {"problem",       "type",    "kernel", "median",     "p5",   "p95",   "samples", "GFLOP/s",
          "measured peak", "of peak", "host",   "first call", "peer", "ratio", "state"};
}

std::vector<std::string> bench_row(Measurement const& measurement, PeerResult const* peer) {
  InterleavedResult const& result = measurement.result;
  double const rate = rate_of(measurement), peak = measurement.ceilings.operations;
  std::string ratio;
  if (peer != nullptr && peer->refusal.empty()) {
    ratio = in_interval(peer->ratio);
    if (peer->algorithms > 0) ratio += ", first " + in_short(peer->first_ratio.median);
    if (std::string const text = peer->algorithm.text(); !text.empty()) ratio += ", " + text;
  }
  return {measurement.task.notes.label,
          measurement.what.type,
          result.choice.kernel,
          in_seconds(result.ours.median),
          in_seconds(result.ours.p5),
          in_seconds(result.ours.p95),
          std::to_string(result.ours.samples),
          in_short(rate * 1e-9),
          peak > 0 ? in_short(peak * 1e-9) : "",
          peak > 0 ? in_short(100 * rate / peak) + '%' : "",
          result.host_seconds ? in_seconds(*result.host_seconds) : "",
          in_seconds(result.prepare_seconds + result.first_call_seconds),
          peer != nullptr ? peer->name : "",
          peer == nullptr || peer->refusal.empty() ? ratio : peer->refusal,
          state_of(measurement, peer)};
}

std::string bench_method(InterleavedRules const& rules, bool on_gpu) {
  std::string const slices =
      std::to_string(rules.slices) + " slices of " + in_short(rules.slice_seconds) + " s";
  if (on_gpu)
    return std::string("host: time to enqueue one call. Median, p5 and p95 of ") +
           (rules.single_calls ? "single calls" : "calls, each the mean over a CUDA graph of calls") +
           ", between events; rate and ratio (peer time / our time) use medians of " + slices +
           ", interleaved with each peer on the same buffers; 95% confidence interval of the median "
           "ratio. first: the first choice of the peer's heuristic.";
  return "host: time to check and pack the arguments of one call. Median, p5 and p95 of single calls; rate and "
         "ratio (peer time / our time) use medians of the minima "
         "of " +
         slices + ", interleaved with each peer; 95% confidence interval of the median ratio.";
}

}  // namespace cosmati::cli
