// A contest on a GPU.
#include "cli/gpu_contest.h"

#include <algorithm>
#include <chrono>

#include "cli/gpu_operands.h"
#include "cli/gpu_peer.h"
#include "cli/gpu_timing.h"
#include "cli/machine.h"
#include "cli/result_sample.h"
#include "cli/sample.h"
#include "cli/table.h"

namespace cosmati::cli {
namespace {

constexpr Index sampled_elements = 512;
constexpr double throttled_below = 0.97;  // of the clock

struct Contender {
  GpuCall call;
  std::vector<Slice> slices;
  std::vector<double> medians;  // of the slices

  void add(Slice slice) {
    medians.push_back(quantile(slice.samples, 0.5));
    slices.push_back(std::move(slice));
  }
};

// A peer with the algorithms that are timed: its best, and where that is another, the one that it names
// first.
struct Rival {
  std::string name;
  std::unique_ptr<GpuPeer> library;
  int best = 0;
  Contender fastest = {}, first = {};

  bool has_two() const { return best != 0; }
};

Times times_of(Contender const& contender) {
  std::vector<double> samples, minima;
  for (Slice const& slice : contender.slices) {
    samples.insert(samples.end(), slice.samples.begin(), slice.samples.end());
    minima.push_back(slice.least);
  }
  return {quantile(samples, 0.5), quantile(samples, 0.05),          quantile(samples, 0.95),
          quantile(minima, 0.5),  quantile(contender.medians, 0.5), static_cast<long long>(samples.size())};
}

Interval ratio_of(Contender const& theirs, Contender const& ours) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.medians.size(); ++i) ratios.push_back(theirs.medians[i] / ours.medians[i]);
  return median_interval(ratios);
}

class GpuContest {
 public:
  GpuContest(Task& task, Device const& device, ContestRules const& rules, unsigned long long seed)
      : task_(task),
        ordinal_(device.gpu.ordinal),
        rules_(rules),
        current_(ordinal_),
        random_(seed, 3),
        timer_(ordinal_) {
    result_.gpu.emplace();
    // What is changed in place is read and written.
    for (Slot const& slot : task.slots())
      result_.bytes += slot.description.bytes() * (slot.role == Role::in_out ? 2 : 1);
    result_.buffers = sets_needed(result_.bytes, device.gpu.l2_bytes, rules.hot);
    operands_.emplace(task, device, result_.buffers, rules.misalignment, random_);
  }

  void prepare(Device const& device, PlanOptions const& options) {
    result_.prepare_seconds = seconds_of([&] { prepared_ = task_.prepare(device, options); });
    result_.choice = prepared_->choice();
    workspace_ = cuda::DeviceBuffer(ordinal_, result_.choice.workspace_bytes);
    ours_.call.enqueue = rotating([this](std::size_t set) { run_ours(set); });
    result_.first_call_seconds = seconds_of([&] {
      run_ours(0);
      cuda::wait(ordinal_, nullptr);
    });
    result_.sample = verdict_on_first_set();
    result_.host_seconds = timer_.host_seconds(ours_.call);
  }

  void add_peer(PeerProblem const& problem) {
    peers_.push_back(
        std::unique_ptr<Rival>(new Rival{problem.peer, make_gpu_peer(problem, *operands_, ordinal_)}));
    Rival& peer = *peers_.back();
    double least = 0;
    for (int i = 0; i < peer.library->algorithms(); ++i) {
      GpuCall call{peer_call(peer, i)};
      (void)timer_.time_slice(call, 0);
      double const seconds = quantile(timer_.time_slice(call, 0.02).samples, 0.5);
      if (i == 0 || seconds < least) {
        least = seconds;
        peer.best = i;
      }
    }
    peer.fastest.call.enqueue = peer_call(peer, peer.best);
    peer.first.call.enqueue = peer_call(peer, 0);
  }

  void measure(GpuGauge& gauge) {
    result_.settled = timer_.warm_up(ours_.call);
    for (long long i = 0; i < rules_.slices; ++i) {
      print_progress(task_.notes.label + ": slice " + std::to_string(i + 1) + " of " +
                     std::to_string(rules_.slices));
      ours_.add(timer_.time_slice(ours_.call, rules_.slice_seconds));
      for (auto const& peer : peers_) {
        if (peer->library->algorithms() == 0) continue;
        peer->fastest.add(timer_.time_slice(peer->fastest.call, rules_.slice_seconds));
        if (peer->has_two()) peer->first.add(timer_.time_slice(peer->first.call, rules_.slice_seconds));
      }
    }
    (void)timer_.time_slice(ours_.call, 0.02);
    result_.gpu->clock_share = gauge.clock_share();
  }

  ContestResult finish() {
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
  // Another set of operands at each call.
  std::function<void()> rotating(std::function<void(std::size_t set)> run) {
    return [this, run = std::move(run), next = std::size_t{0}]() mutable {
      run(next);
      next = (next + 1) % operands_->sets();
    };
  }

  std::function<void()> peer_call(Rival const& peer, int algorithm) {
    return rotating([&library = *peer.library, algorithm](std::size_t set) { library.run(algorithm, set); });
  }

  void run_ours(std::size_t set) { prepared_->run(operands_->pointers(set), workspace_.data()); }

  std::optional<Verdict> verdict_on_first_set() {
    if (task_.notes.axes.empty()) return {};
    return verify_sample(task_, operands_->download(0), sampled_elements, random_);
  }

  // That it computed what we did: else the ratio says nothing.
  std::optional<Verdict> verdict_on_peer(GpuPeer const& library, int algorithm) {
    std::optional<double> const tolerance = library.tolerance();
    std::optional<ResultSample> sample;
    if (tolerance) {
      run_ours(0);
      sample.emplace(task_, *operands_, ordinal_, random_);
    }
    operands_->poison_outputs(0);
    library.run(algorithm, 0);
    library.bring_back(algorithm, 0);
    return sample ? sample->compare(*tolerance) : verdict_on_first_set();
  }

  PeerResult result_of(Rival& peer) {
    GpuPeer const& library = *peer.library;
    PeerResult result;
    result.name = peer.name;
    result.version = library.version();
    result.refusal = library.refusal();
    if (!result.refusal.empty()) return result;
    result.algorithms = library.algorithms();
    result.chosen = peer.best;
    result.algorithm = library.algorithm_name(peer.best);
    result.workspace_bytes = static_cast<long long>(library.workspace_bytes(peer.best));
    result.seconds = quantile(peer.fastest.medians, 0.5);
    result.ratio = ratio_of(peer.fastest, ours_);
    Contender const& first = peer.has_two() ? peer.first : peer.fastest;
    result.first_seconds = quantile(first.medians, 0.5);
    result.first_ratio = ratio_of(first, ours_);
    result.sample = verdict_on_peer(library, peer.best);
    return result;
  }

  Task& task_;
  int ordinal_;
  ContestRules rules_;
  cuda::Current current_;
  nets::Random random_;
  GpuTimer timer_;
  std::optional<GpuOperands> operands_;
  std::unique_ptr<PreparedTask> prepared_;
  cuda::DeviceBuffer workspace_;
  Contender ours_;
  std::vector<std::unique_ptr<Rival>> peers_;
  ContestResult result_;
};

}  // namespace

ContestResult hold_gpu_contest(Task& task, Device const& device, PlanOptions const& options,
                               ContestRules const& rules, std::vector<PeerProblem> const& peers,
                               unsigned long long seed, GpuGauge& gauge) {
  GpuContest contest(task, device, rules, seed);
  contest.prepare(device, options);
  for (PeerProblem const& peer : peers) contest.add_peer(peer);
  contest.measure(gauge);
  return contest.finish();
}

}  // namespace cosmati::cli
