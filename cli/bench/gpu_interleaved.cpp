// Benchmarks one problem on a GPU, interleaved with its peers.
#include "cli/bench/gpu_interleaved.h"

#include <algorithm>
#include <chrono>

#include "cli/bench/gpu_timing.h"
#include "cli/bench/peers/gpu_peer.h"
#include "cli/bench/peers/torch_peer.h"
#include "cli/data/gpu_operands.h"
#include "cli/data/result_sample.h"
#include "cli/data/sample.h"
#include "cli/machine.h"
#include "cli/output/table.h"

namespace cosmati::cli {
namespace {

constexpr Index sampled_elements = 512;
constexpr double throttled_below = 0.97;  // share of the clock
// Limits for choosing among a peer's algorithms: how long to try them, which ones are finalists, and how long
// each finalist is timed.
constexpr double max_choosing_seconds = 4, near_the_fastest = 1.3, finalist_seconds = 0.02;
constexpr std::size_t max_finalists = 8;
constexpr int finalist_rounds = 5;

struct Participant {
  GpuCall call;
  TorchPeer* torch = nullptr;  // timed instead of `call`
  std::vector<Slice> slices;
  std::vector<double> medians;  // one value per slice

  void add(Slice slice) {
    medians.push_back(quantile(slice.samples, 0.5));
    slices.push_back(std::move(slice));
  }
};

// A peer and its timed algorithms: the best one and, if that is a different one, the library's first choice.
struct Rival {
  std::string name;
  std::unique_ptr<GpuPeer> library;
  std::vector<PeerTrial> trials = {};  // the trial of each algorithm, by its number
  int tried = 0, best = 0, named_first = 0;
  Participant fastest = {}, first = {};
  std::unique_ptr<TorchPeer> torch = {};  // instead of a library
  double host_seconds = 0;
  std::string refusal = {};

  bool has_two() const { return best != named_first; }
};

Times times_of(Participant const& participant) {
  std::vector<double> samples, minima;
  for (Slice const& slice : participant.slices) {
    samples.insert(samples.end(), slice.samples.begin(), slice.samples.end());
    minima.push_back(slice.minimum);
  }
  return {quantile(samples, 0.5),
          quantile(samples, 0.05),
          quantile(samples, 0.95),
          quantile(minima, 0.5),
          quantile(participant.medians, 0.5),
          static_cast<long long>(samples.size())};
}

Interval ratio_of(Participant const& theirs, Participant const& ours) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.medians.size(); ++i) ratios.push_back(theirs.medians[i] / ours.medians[i]);
  return median_interval(ratios);
}

class InterleavedGpuBenchmark {
 public:
  InterleavedGpuBenchmark(Task& task, Device const& device, InterleavedRules const& rules,
                          unsigned long long seed)
      : task_(task),
        ordinal_(device.gpu.ordinal),
        rules_(rules),
        current_(ordinal_),
        random_(seed, 3),
        timer_(ordinal_) {
    result_.gpu.emplace();
    // An array that is updated in place is both read and written.
    for (Slot const& slot : task.slots())
      result_.bytes += slot.description.bytes() * (slot.role == Role::in_out ? 2 : 1);
    result_.buffers = sets_needed(result_.bytes, device.gpu.l2_bytes, rules.hot);
    operands_.emplace(task, device, result_.buffers, rules.misalignment, random_);
  }

  void prepare(Device const& device, PlanOptions const& options) {
    result_.prepare_seconds = seconds_of([&] { prepared_ = task_.prepare(device, options); });
    result_.choice = prepared_->choice();
    workspace_ = cuda::DeviceBuffer(ordinal_, result_.choice.workspace_bytes);
    ours_.call.enqueue = rotating([this](std::size_t set, Stream stream) { run_ours(set, stream); });
    result_.first_call_seconds = seconds_of([&] {
      run_ours(0, nullptr);
      cuda::wait(ordinal_, nullptr);
    });
    result_.sample = verdict_on_first_set();
    result_.host_seconds = timer_.host_seconds(ours_.call);
    capture(ours_.call, "ours");
  }

  void add_peer(PeerProblem const& problem, Device const& device, PlanOptions const& options) {
    if (problem.peer == "torch") return add_torch(problem, device, options);
    peers_.push_back(
        std::unique_ptr<Rival>(new Rival{problem.peer, make_gpu_peer(problem, *operands_, ordinal_)}));
    Rival& peer = *peers_.back();
    peer.refusal = peer.library->refusal();
    if (peer.refusal.empty()) choose_algorithm(peer);
    if (!peer.refusal.empty()) return;
    peer.fastest.call.enqueue = peer_call(peer, peer.best);
    peer.host_seconds = timer_.host_seconds(peer.fastest.call);
    capture(peer.fastest.call, peer.name);
    if (!peer.has_two()) return;
    peer.first.call.enqueue = peer_call(peer, peer.named_first);
    capture(peer.first.call, peer.name);
  }

  void measure(GpuPeaks& gpu_peaks) {
    if (!result_.gpu->capture_failure.empty())
      for (Participant* const one : participants()) {
        one->call.forget_graph();
        if (one->torch != nullptr) one->torch->forget_graphs();
      }
    if (ours_.call.graph) result_.gpu->calls_in_graph = static_cast<long long>(ours_.call.calls_in_graph);
    result_.settled = timer_.warm_up(ours_.call);
    std::vector<Participant*> turn = participants();
    for (long long i = 0; i < rules_.slices; ++i) {
      print_progress(task_.notes.label + ": slice " + std::to_string(i + 1) + " of " +
                     std::to_string(rules_.slices));
      for (Participant* const one : turn) one->add(slice_of(*one));
      // Alternates the order, so that no participant always runs after the same one.
      std::reverse(turn.begin(), turn.end());
    }
    (void)timer_.time_slice(ours_.call, 0.02);
    result_.gpu->clock_share = gpu_peaks.clock_share();
  }

  InterleavedResult finish() {
    result_.ours = times_of(ours_);
    std::size_t const half = ours_.medians.size() / 2;
    auto const median_of = [&](std::size_t from, std::size_t to) {
      auto const begin = ours_.medians.begin();
      return quantile({begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to)},
                      0.5);
    };
    if (half > 0) result_.steady = median_of(half, ours_.medians.size()) <= 1.03 * median_of(0, half);
    result_.gpu->throttled = result_.gpu->clock_share < throttled_below;
    for (auto const& peer : peers_) result_.peers.push_back(result_of(*peer));
    return std::move(result_);
  }

 private:
  void add_torch(PeerProblem const& problem, Device const& device, PlanOptions const& options) {
    peers_.push_back(std::unique_ptr<Rival>(new Rival{problem.peer, nullptr}));
    Rival& peer = *peers_.back();
    std::vector<Tensor> const tensors = operands_->download(0);
    TorchPeer::Rules const rules{problem.python, static_cast<long long>(operands_->sets()),
                                 !rules_.single_calls};
    peer.torch = std::make_unique<TorchPeer>(task_, device, options, rules, addresses_of(tensors));
    peer.refusal = peer.torch->refusal();
    peer.fastest.torch = peer.torch.get();
  }

  static std::vector<void const*> addresses_of(std::vector<Tensor> const& tensors) {
    std::vector<void const*> addresses;
    for (Tensor const& tensor : tensors) addresses.push_back(tensor.data());
    return addresses;
  }

  // The PyTorch process uses the device while ours is idle.
  Slice slice_of(Participant& one) {
    if (one.torch == nullptr) return timer_.time_slice(one.call, rules_.slice_seconds);
    PeerTimes const times = one.torch->time(rules_.slice_seconds);
    return {{times.median}, times.minimum};
  }

  // Every call uses the next set of operands.
  std::function<void(Stream)> rotating(std::function<void(std::size_t set, Stream stream)> run) {
    return [this, run = std::move(run), next = std::size_t{0}](Stream stream) mutable {
      run(next, stream);
      next = (next + 1) % operands_->sets();
    };
  }

  std::function<void(Stream)> peer_call(Rival const& peer, int algorithm) {
    return rotating([&library = *peer.library, algorithm](std::size_t set, Stream stream) {
      library.run(algorithm, set, stream);
    });
  }

  void run_ours(std::size_t set, Stream stream) {
    prepared_->run(operands_->pointers(set), workspace_.data(), stream);
  }

  std::vector<Participant*> participants() {
    std::vector<Participant*> list{&ours_};
    for (auto const& peer : peers_) {
      if (!peer->refusal.empty()) continue;
      list.push_back(&peer->fastest);
      if (peer->has_two()) list.push_back(&peer->first);
    }
    return list;
  }

  // A call that cannot be captured is timed as single calls; measure() then does the same for all
  // participants.
  void capture(GpuCall& call, std::string const& whose) {
    if (rules_.single_calls) return;
    try {
      timer_.capture(call, operands_->sets());
    } catch (Error const& error) {
      if (error.code() != ErrorCode::system) throw;
      if (result_.gpu->capture_failure.empty()) result_.gpu->capture_failure = whose + ": " + error.what();
    }
  }

  struct Trial {
    int algorithm;
    double seconds;
  };

  // Runs every algorithm a few times, for a few seconds in all, and times those close to the fastest for
  // longer.
  void choose_algorithm(Rival& peer) {
    std::vector<Trial> trials;
    std::string failure;
    double minimum = 0;
    auto const start = std::chrono::steady_clock::now();
    for (int i = 0; i < peer.library->algorithms(); ++i) {
      peer.trials.push_back({peer.library->algorithm(i), peer.library->workspace_bytes(i)});
      std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
      if (!trials.empty() && spent.count() > max_choosing_seconds) {
        peer.trials.back().reason = "the time limit for choosing was reached";
        continue;
      }
      GpuCall call{peer_call(peer, i)};
      try {
        double const seconds = timer_.rough_seconds(call, minimum, !rules_.single_calls);
        minimum = minimum == 0 ? seconds : std::min(minimum, seconds);
        trials.push_back({i, seconds});
        peer.trials.back().tried_seconds = seconds;
      } catch (Error const& error) {  // a plan that fails to run
        if (error.code() != ErrorCode::system) throw;
        failure = peer.trials.back().reason = error.what();
      }
    }
    if (trials.empty()) {
      peer.refusal = peer.name + " could not run any of its algorithms: " + failure;
      return;
    }
    peer.named_first = peer.best = trials.front().algorithm;
    peer.tried = static_cast<int>(trials.size());
    std::stable_sort(trials.begin(), trials.end(),
                     [](Trial const& x, Trial const& y) { return x.seconds < y.seconds; });
    std::erase_if(trials, [&](Trial const& one) { return one.seconds > near_the_fastest * minimum; });
    if (trials.size() > max_finalists)
      trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(max_finalists), trials.end());
    std::vector<GpuCall> finalists;
    for (Trial const& trial : trials) {
      finalists.push_back({peer_call(peer, trial.algorithm)});
      if (!rules_.single_calls) try {
          timer_.capture(finalists.back(), operands_->sets());
        } catch (Error const& error) {
          if (error.code() != ErrorCode::system) throw;
        }
    }
    std::vector<double> const seconds =
        medians_in_turns(finalists.size(), finalist_rounds, [&](std::size_t i) {
          return quantile(timer_.time_slice(finalists[i], finalist_seconds / finalist_rounds).samples, 0.5);
        });
    for (std::size_t i = 0; i < trials.size(); ++i)
      peer.trials[static_cast<std::size_t>(trials[i].algorithm)].measured_seconds = seconds[i];
    auto const best = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
    peer.best = trials[static_cast<std::size_t>(best)].algorithm;
  }

  std::optional<Verdict> verdict_on_first_set() {
    if (task_.notes.axes.empty()) return {};
    return verify_sample(task_, operands_->download(0), sampled_elements, random_);
  }

  // Compares the peer's result with ours; without this check the ratio would be meaningless.
  std::optional<Verdict> verdict_on_peer(GpuPeer const& library, int algorithm) {
    std::optional<double> const tolerance = library.tolerance();
    std::optional<ResultSample> sample;
    if (tolerance) {
      run_ours(0, nullptr);
      sample.emplace(task_, *operands_, ordinal_, random_);
    }
    operands_->poison_outputs(0);
    library.run(algorithm, 0, nullptr);
    library.copy_result(algorithm, 0);
    return sample ? sample->compare(*tolerance) : verdict_on_first_set();
  }

  PeerResult result_of(Rival& peer) {
    PeerResult result;
    result.name = peer.name;
    result.version = peer.torch ? peer.torch->version() : peer.library->version();
    result.refusal = peer.refusal;
    if (peer.library) {
      result.trials = peer.trials;
      for (PeerTrial& other : peer.library->left_out()) result.trials.push_back(std::move(other));
    }
    if (!result.refusal.empty()) return result;
    if (peer.torch) {
      result.algorithm = peer.torch->algorithm();
      result.tried = peer.torch->tried();
      result.seconds = quantile(peer.fastest.medians, 0.5);
      result.ratio = ratio_of(peer.fastest, ours_);
      run_ours(0, nullptr);
      result.sample = peer.torch->verdict(addresses_of(operands_->download(0)), rules_.max_verified);
      return result;
    }
    GpuPeer const& library = *peer.library;
    result.algorithms = library.algorithms();
    result.chosen = peer.best;
    result.algorithm = library.algorithm(peer.best);
    result.host_seconds = peer.host_seconds;
    result.tried = peer.tried;
    result.workspace_bytes = static_cast<long long>(library.workspace_bytes(peer.best));
    result.seconds = quantile(peer.fastest.medians, 0.5);
    result.ratio = ratio_of(peer.fastest, ours_);
    Participant const& first = peer.has_two() ? peer.first : peer.fastest;
    result.first_seconds = quantile(first.medians, 0.5);
    result.first_ratio = ratio_of(first, ours_);
    result.sample = verdict_on_peer(library, peer.best);
    return result;
  }

  Task& task_;
  int ordinal_;
  InterleavedRules rules_;
  cuda::Current current_;
  nets::Random random_;
  GpuTimer timer_;
  std::optional<GpuOperands> operands_;
  std::unique_ptr<PreparedTask> prepared_;
  cuda::DeviceBuffer workspace_;
  Participant ours_;
  std::vector<std::unique_ptr<Rival>> peers_;
  InterleavedResult result_;
};

}  // namespace

InterleavedResult run_interleaved_on_gpu(Task& task, Device const& device, PlanOptions const& options,
                                         InterleavedRules const& rules, std::vector<PeerProblem> const& peers,
                                         unsigned long long seed, GpuPeaks& gpu_peaks) {
  InterleavedGpuBenchmark benchmark(task, device, rules, seed);
  benchmark.prepare(device, options);
  for (PeerProblem const& peer : peers) benchmark.add_peer(peer, device, options);
  benchmark.measure(gpu_peaks);
  return benchmark.finish();
}

}  // namespace cosmati::cli
