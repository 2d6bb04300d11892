// The body of `cosmati bench`.
#include "cli/bench/bench_job.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "cli/bench/bench_report.h"
#include "cli/bench/gpu_interleaved.h"
#include "cli/bench/peak.h"
#include "cli/bench/provenance.h"
#include "cli/data/pointer_arrays.h"
#include "cli/networks/output_files.h"
#include "cli/operations/notes.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/run_job.h"
#include "cli/verify/verification.h"
#include "cosmati/gemm/policy.h"
#include "src/io/file.h"

namespace cosmati::cli {
namespace {

void check_peers(BenchRequest const& request, Device const& device) {
  if (request.peers.empty()) return;
  for (std::string const& peer : split(request.peers, ',')) {
    one_of(peer, {"onednn", "openblas", "cublaslt", "cublas", "cudnn", "torch"}, "--peer");
    if (peer == "torch") {
      if (device.backend == Backend::cuda || device.backend == Backend::cpu) continue;
      throw Error(ErrorCode::unavailable,
                  std::string("peer torch is timed with --backend cuda or cpu, not with --backend ") +
                      name_of(device.backend));
    }
    bool const on_gpu = peer == "cublaslt" || peer == "cublas" || peer == "cudnn";
    if (on_gpu != (device.backend == Backend::cuda))
      throw Error(ErrorCode::unavailable, "peer " + peer +
                                              (on_gpu ? " requires --backend cuda, not --backend "
                                                      : " is timed on the host, not with --backend ") +
                                              name_of(device.backend));
  }
}

// Describes a matrix (batch, rows, columns), stored transposed or not, for a peer.
PeerMatrix place_of(TensorDescription const& matrix, bool transposed, Placement const& placement) {
  PeerMatrix place;
  if (placement.gap > 0) {
    place.leading = matrix.layout.stride[transposed ? 1 : 2];
    place.batch_stride = matrix.layout.stride[0];
  }
  if (placement.misalignment > 0) place.alignment = matrix.alignment;
  return place;
}

PeerProblem convolution_for(std::string const& peer, BenchRequest const& request, Task const& task) {
  ConvolutionProblem const* const problem = task.convolution();
  if (problem == nullptr || problem->direction == ConvolutionDirection::bias || problem->has_depth() ||
      !(problem->epilogue.expression == epilogue::Expression()))
    throw Error(
        ErrorCode::unavailable,
        "peer " + peer +
            " is timed only for convolutions of images (forward, data, filter and transposed) with the epilogue acc, "
            "not for " +
            request.subject->name() + ' ' + task.notes.label);
  PeerProblem result{peer, "", problem->x.type};
  result.convolution = *problem;
  result.same_layout = request.same_layout;
  return result;
}

// --python, else COSMATI_PYTHON, else python3.
PeerProblem torch_for(BenchRequest const& request) {
  if (request.placement.gap > 0 || request.placement.misalignment > 0)
    throw Error(ErrorCode::unavailable,
                "peer torch is timed only on dense, aligned arrays, not with --gap or --misalign");
  char const* const named = std::getenv("COSMATI_PYTHON");
  PeerProblem problem;
  problem.peer = "torch";
  problem.python = !request.python.empty()           ? request.python
                   : named != nullptr && *named != 0 ? named
                                                     : "python3";
  return problem;
}

PeerProblem group_for(BenchRequest const& request, Task& task) {
  Notes const& notes = task.notes;
  auto const slots = task.slots();
  std::size_t members = 0;
  for (Slot const& slot : slots) members += slot.name.starts_with("a[") ? 1 : 0;
  if (members == 0)
    throw Error(ErrorCode::unavailable,
                "peer cublas is timed only for groups of products (gemm --group), not for " +
                    request.subject->name() + ' ' + notes.label +
                    "; --peer cublaslt supports single products");
  if (!notes.plain)
    throw Error(ErrorCode::unavailable, "peer cublas is timed only for the epilogue alpha*acc + beta*c");
  PeerProblem problem{"cublas", "", slots.front().description.type};
  problem.result = slots.back().description.type;
  problem.sum = notes.sum;
  problem.alpha = notes.alpha;
  problem.beta = notes.beta;
  problem.slots_of_member = slots.size() / members;
  for (Slot const& slot : slots) problem.group.push_back(slot.description);
  return problem;
}

// The problem as each peer receives it: a product, a group or a convolution.
std::vector<PeerProblem> peer_problems(BenchRequest const& request, Task& task, Device const& device) {
  std::vector<PeerProblem> problems;
  if (request.peers.empty()) return problems;
  Notes const& notes = task.notes;
  for (std::string const& peer : split(request.peers, ',')) {
    if (peer == "torch") {
      problems.push_back(torch_for(request));
      continue;
    }
    if (peer == "cudnn") {
      problems.push_back(convolution_for(peer, request, task));
      continue;
    }
    if (peer == "cublas") {
      problems.push_back(group_for(request, task));
      continue;
    }
    if (notes.transposition.empty())
      throw Error(ErrorCode::unavailable,
                  "peer " + peer + " is timed only for single matrix products, not for " +
                      request.subject->name() + (notes.label.empty() ? "" : " " + notes.label));
    auto const slots = task.slots();
    TensorDescription const &a = slots[0].description, &b = slots[1].description, &c = slots[2].description,
                            &d = slots.back().description;
    if (a.type != b.type && device.backend != Backend::cuda)
      throw Error(ErrorCode::unavailable, "peer " + peer + " requires operands of one type, not " +
                                              name_of(a.type) + " and " + name_of(b.type));
    if (device.backend == Backend::cuda && (!notes.plain || c.type != d.type))
      throw Error(
          ErrorCode::unavailable,
          "peer " + peer + " is timed only for the epilogue alpha*acc + beta*c with c and d of one type");
    Placement const& placement = request.placement;
    if (device.backend != Backend::cuda && (placement.gap > 0 || placement.misalignment > 0))
      throw Error(ErrorCode::unavailable,
                  "peer " + peer + " is timed only on dense, aligned arrays, not with --gap or --misalign");
    problems.push_back({peer, notes.transposition, a.type, a.extent(1), b.extent(2), a.extent(2), a.extent(0),
                        1, device.threads, d.type, notes.sum, notes.alpha, notes.beta});
    problems.back().place_a = place_of(a, notes.transposition[0] == 't', placement);
    problems.back().place_b = place_of(b, notes.transposition[1] == 't', placement);
    problems.back().place_d = place_of(d, false, placement);
    if (a.type != b.type) problems.back().type_b = b.type;
    if (notes.by_pointers) {
      problems.back().by_pointers = true;
      problems.back().place_a.alignment = alignment_of_matrices(a);
      problems.back().place_b.alignment = alignment_of_matrices(b);
      problems.back().place_d.alignment = alignment_of_matrices(d);
    }
    problems.back().fast_sums = notes.compute == ComputeMode::fast_accumulation;
  }
  return problems;
}

class Session {
 public:
  explicit Session(BenchRequest const& request)
      : request_(request), rules_{request.slices,       request.slice_seconds, request.hot, 0,
                                  request.single_calls, request.max_verified} {
    if (!request.fail_below.empty()) {
      limit_ = parse_number(request.fail_below, "--fail-below");
      if (!(limit_ > 0 && limit_ <= 1e6))
        throw Error(ErrorCode::bad_request, "--fail-below " + request.fail_below +
                                                " is out of range; expected more than 0, e.g. 0.97");
      if (request.peers.empty())
        throw Error(ErrorCode::bad_request, "--fail-below " + request.fail_below +
                                                " is a ratio to a peer; missing option --peer NAME");
    }
  }

  void measure(BenchRequest const& request, std::vector<Index> const& size, Common const& common,
               std::string const& suite) {
    Device const device = request_.digest ? common.device_to_plan_for() : common.device_to_run_on();
    check_peers(request, device);
    bool const on_gpu = device.backend == Backend::cuda;
    on_gpu_ = on_gpu_ || on_gpu;
    if (request.single_calls && !on_gpu)
      throw Error(ErrorCode::bad_request,
                  std::string("--single-calls requires --backend cuda, not ") + name_of(device.backend));
    Job const job = made_job(*request.subject, size, common);
    Task& task = *job.task;
    // Peers compute the filter gradient alone; libraries compute the bias gradient by another call.
    if (!request.peers.empty())
      task.visit([](char const* name, Role, TensorDescription& description) {
        if (name == std::string("db")) description = {};
      });
    place(task, request.placement);
    InterleavedRules rules = rules_;
    rules.misalignment = request.placement.misalignment;
    PlanOptions const options = plan_options(*request.subject, common);
    std::string const digest = kernel_digest(task, device, options);
    DataType const type = task.slots().front().description.type;
    if (request_.digest) {
      Choice const choice = task.plan(device, options);
      Provenance const provenance{suite, request.subject->name(), name_of(type), digest};
      return print_text(digest_record(provenance, task, device, choice).json());
    }
    auto const seed = static_cast<unsigned long long>(common.seed);
    std::optional<Verdict> verdict;
    if (task.notes.operations <= request_.max_verified) {
      nets::Random random(seed, 1);
      // Works on a copy, since verification changes the alignment that the task's descriptions promise.
      auto const verified = task.clone();
      verdict = verify_task(*verified, device, options, {false, rules.misalignment}, random);
    }
    auto const peers = peer_problems(request, task, device);
    InterleavedResult const result =
        on_gpu ? run_interleaved_on_gpu(task, device, options, rules, peers, seed, gpu_peaks_of(device))
               : run_interleaved(task, device, options, rules, peers, seed);
    if (!verdict) verdict = result.sample;
    if (verdict && !verdict->correct) failures_.push_back(task.notes.label + ": " + verdict->complaint);
    Measurement const measurement{
        {suite, request.subject->name(), name_of(type), digest},
        task,
        device,
        rules_,
        common.seed,
        result,
        verdict,
        on_gpu ? ceilings_of_gpu(device, task, type, result.choice) : ceilings_of_host(device, type)};
    if (result.peers.empty()) report(measurement, nullptr);
    for (PeerResult const& peer : result.peers) {
      report(measurement, &peer);
      if (!request_.fail_below.empty() && peer.refusal.empty() && !(peer.ratio.median >= limit_))
        failures_.push_back(task.notes.label + ": " + in_short(peer.ratio.median) + " of " + peer.name +
                            ", below " + request_.fail_below);
    }
  }

  void finish() const {
    if (!request_.common.json && !request_.digest) {
      table_.print();
      if (gpu_peaks_ != nullptr) print_line("Measured here: " + peaks_text() + '.');
      print_line(bench_method(rules_, on_gpu_));
    }
    if (!failures_.empty()) throw Error(ErrorCode::wrong_result, join(failures_, "; "));
  }

 private:
  void report(Measurement const& measurement, PeerResult const* peer) {
    std::string const line = bench_record(measurement, peer).json();
    if (!request_.json_file.empty()) io::append_line(request_.json_file, line);
    if (request_.common.json) print_text(line);
    if (peer != nullptr && !request_.peer_log.empty())
      for (PeerTrial const& trial : peer->trials)
        io::append_line(request_.peer_log, trial_record(measurement, *peer, trial).json());
    table_.add(bench_row(measurement, peer));
  }

  // Measures the peaks once for each type.
  Ceilings ceilings_of_host(Device const& device, DataType type) {
    auto const known = host_peaks_.find(type);
    double const peak =
        known != host_peaks_.end() ? known->second : host_peaks_[type] = measured_peak(type, device.threads);
    return {"", peak};
  }

  // One GpuPeaks per device, shared by all benchmarks of this process. The map is never destroyed, because
  // the driver may already be unloaded at exit.
  GpuPeaks& gpu_peaks_of(Device const& device) {
    static auto& all_peaks = *new std::map<int, GpuPeaks>;
    auto const [at, is_new] = all_peaks.try_emplace(device.gpu.ordinal, device.gpu);
    gpu_peaks_ = &at->second;
    if (is_new) {
      // About 30 ms of work wake the device and measure its highest clock before it heats up.
      for (int i = 0; i < 300; ++i) (void)gpu_peaks_->clock_share();
      (void)gpu_peaks_->peak(cuda::Peak::fma_f32);
    }
    return *gpu_peaks_;
  }

  Ceilings ceilings_of_gpu(Device const& device, Task const& task, DataType type, Choice const& choice) {
    GpuPeaks& gpu_peaks = gpu_peaks_of(device);
    std::optional<cuda::Peak> peak;
    if (!task.notes.transposition.empty() && choice.multiply && choice.multiply != Multiply::wmma)
      peak = peak_for(type, task.notes.sum, *choice.multiply, device.gpu);
    if (!peak) return {"", 0, gpu_peaks.copy_rate()};
    cuda::PeakRate const rate = gpu_peaks.peak(*peak);
    return {cuda::name_of(*peak), cuda::ceiling_of(*peak, rate), gpu_peaks.copy_rate(), rate.burst,
            rate.sustained};
  }

  std::string peaks_text() const {
    std::string text;
    for (auto const& [peak, rate] : gpu_peaks_->peaks())
      text += std::string(cuda::name_of(peak)) + ' ' + in_short(rate.sustained * 1e-12) +
              " Top/s sustained, " + in_short(rate.burst * 1e-12) + " burst, ";
    return text + "copies " + in_short(gpu_peaks_->copy_rate() * 1e-12) + " TB/s";
  }

  BenchRequest const& request_;
  InterleavedRules rules_;
  bool on_gpu_ = false;
  std::map<DataType, double> host_peaks_;
  GpuPeaks* gpu_peaks_ = nullptr;  // of the GPU measured last
  double limit_ = 0;
  Table table_{bench_heads()};
  std::vector<std::string> failures_;
};

// Rejects options that have no effect without a peer.
void check_options_of_peers(BenchRequest const& request) {
  std::vector<std::string> const peers =
      request.peers.empty() ? std::vector<std::string>{} : split(request.peers, ',');
  if (!request.python.empty() && std::find(peers.begin(), peers.end(), "torch") == peers.end())
    throw Error(ErrorCode::bad_request,
                "--python " + request.python + " is for the peer torch; missing option --peer torch");
  if (!request.peer_log.empty() && peers.empty())
    throw Error(ErrorCode::bad_request,
                "--peer-log " + request.peer_log + " lists a peer's algorithms; missing option --peer NAME");
  if (request.same_layout && std::find(peers.begin(), peers.end(), "cudnn") == peers.end())
    throw Error(ErrorCode::bad_request,
                "--same-layout restricts the peer cudnn; missing option --peer cudnn");
}

void measure_all(Session& session, BenchRequest const& request, std::vector<std::vector<Index>> const& sizes,
                 std::string const& suite) {
  for (std::string const& type : requested_types(*request.subject, request.common.types.all)) {
    Common common = request.common;
    common.types.all = type;
    for (auto const& size : sizes) session.measure(request, size, common, suite);
  }
}

}  // namespace

BenchRequest BenchRequest::copy() const {
  BenchRequest other{subject->clone(), size,        suite,        shapes,     lines,  peers,         python,
                     peer_log,         same_layout, json_file,    fail_below, slices, slice_seconds, hot,
                     single_calls,     digest,      max_verified, placement,  common, workload};
  return other;
}

void bench_job(BenchRequest const& request, WithOptions const& with_options) {
  check_options(request.common);
  check_options_of_peers(request);
  if (request.slices < 1 || request.slices > 100000)
    throw Error(ErrorCode::bad_request,
                "--slices " + std::to_string(request.slices) + " is invalid; valid values: 1 to 100000");
  if (!(request.slice_seconds > 0 && request.slice_seconds <= 60))
    throw Error(ErrorCode::bad_request,
                "--slice-seconds " + in_short(request.slice_seconds) + "; expected more than 0, up to 60");
  if (!(request.max_verified >= 0))
    throw Error(ErrorCode::bad_request, "--verify-below " + in_short(request.max_verified) +
                                            " is out of range; expected 0 or more operations");
  check_files({{"--json", request.json_file}, {"--peer-log", request.peer_log}},
              inputs_of(request.common, {{"--shapes", request.shapes}}));
  Session session(request);
  std::vector<std::vector<Index>> sizes;
  if (!request.workload) sizes = requested_sizes(*request.subject, request.size);
  std::vector<Suite> suites =
      requested_suites(request.subject->name(), request.suite, request.shapes, request.lines);
  if (request.workload) suites.push_back(*request.workload);
  if (sizes.empty() && suites.empty())
    throw Error(ErrorCode::bad_request,
                "missing problem size; give a size, --suite NAME or --shapes FILE, e.g. " +
                    request.subject->size_example());
  measure_all(session, request, sizes, "");
  for (Suite const& suite : suites)
    for (ProblemOptions const& problem : suite.problems) {
      BenchRequest const one = with_options(request, problem);
      measure_all(session, one, requested_sizes(*one.subject, one.size), suite.name);
    }
  session.finish();
}

}  // namespace cosmati::cli
