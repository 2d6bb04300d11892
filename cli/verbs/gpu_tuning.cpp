// Tunes one problem on a GPU.
#include "cli/verbs/gpu_tuning.h"

#include <algorithm>
#include <set>

#include "cli/bench/gpu_timing.h"
#include "cli/data/gpu_operands.h"
#include "cli/data/sample.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "src/jit/cache.h"
#include "src/jit/run_all.h"

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Index sampled_elements = 512;
constexpr std::size_t max_finalists = 4;  // besides the plan's own choice and that of the file
constexpr std::size_t max_centers = 3;    // the fastest ones, whose neighbors are measured
constexpr double share_of_exploration = 0.75;
constexpr double rough_seconds = 0.02;

PlanOptions with_line(PlanOptions options, TuningLine const& line) {
  TuningTable table;
  table.add(line);
  options.tuning = std::make_shared<TuningTable const>(std::move(table));
  return options;
}

std::string id_of(TuningLine const& line) {
  return line.kernel + ' ' + line.policy + ' ' + std::to_string(line.splits);
}

struct Trial {
  TuningCandidate candidate;
  std::unique_ptr<PreparedTask> prepared;
  GpuCall call;
  double rough = 0;
  std::vector<double> medians;  // one per slice
  bool has_neighbors = false;   // neighbors were measured

  double seconds() const { return quantile(medians, 0.5); }
};

Interval ratio_of(Trial const& theirs, Trial const& ours) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < ours.medians.size(); ++i) ratios.push_back(theirs.medians[i] / ours.medians[i]);
  return median_interval(ratios);
}

class GpuTuning {
 public:
  GpuTuning(Task& task, TuningChoices const& choices, Device const& device, PlanOptions const& options,
            TuningRules const& rules, unsigned long long seed)
      : task_(task),
        choices_(choices),
        device_(device),
        options_(options),
        rules_(rules),
        current_(device.gpu.ordinal),
        random_(seed, 5),
        timer_(device.gpu.ordinal),
        operands_(task, device, sets_of(task), rules.misalignment, random_) {}

  TuningResult tune(TuningLine const* known) {
    std::vector<TuningCandidate> const first = choices_.tuning_candidates();
    if (first.empty())
      throw Error(ErrorCode::bad_request,
                  task_.notes.label + ": there is nothing to choose for this problem");
    explore({first.front()}, true);
    if (trials_.empty())
      throw Error(ErrorCode::system, task_.notes.label + ": the plan's own choice, " + first.front().recipe +
                                         ", cannot be prepared: " + complaint_);
    Trial* const planned = trials_.front().get();
    Trial* const incumbent = known == nullptr ? nullptr : add_known(*known);
    (void)timer_.warm_up(planned->call);
    explore(first, false);
    while (Trial* const center = next_center()) {
      center->has_neighbors = true;
      explore(choices_.neighbors(center->candidate.line), false);
    }
    return decide(*planned, incumbent);
  }

 private:
  long long sets_of(Task& task) const {
    long long bytes = 0;
    for (Slot const& slot : task.slots()) bytes += slot.description.bytes();
    return sets_needed(bytes, device_.gpu.l2_bytes, rules_.hot);
  }

  double spent() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool has_time() const { return spent() < share_of_exploration * rules_.budget_seconds; }

  Trial* add_known(TuningLine const& line) {
    auto const candidate = choices_.tuning_candidate_of(line);
    if (candidate.empty()) return nullptr;
    explore(candidate, true);
    for (auto const& trial : trials_)
      if (id_of(trial->candidate.line) == id_of(line)) return trial.get();
    return nullptr;
  }

  // Compiles on all threads, then times the kernels one by one. `at_any_rate`: ignores the time budget.
  void explore(std::vector<TuningCandidate> const& all, bool at_any_rate) {
    std::vector<TuningCandidate> tuning_candidates;
    for (TuningCandidate const& one : all)
      if (seen_.insert(id_of(one.line)).second) tuning_candidates.push_back(one);
    std::vector<char> compiled(tuning_candidates.size(), 0);
    jit::run_all(tuning_candidates.size(), rules_.threads, [&](std::size_t i) {
      if (!at_any_rate && !has_time()) return;
      try {
        auto const composition = task_.compose(device_, with_line(options_, tuning_candidates[i].line));
        if (composition) (void)jit::kernel_cache().get(composition->source);
        compiled[i] = 1;
      } catch (Error const&) {  // skips choices that do not compile
      }
    });
    for (std::size_t i = 0; i < tuning_candidates.size(); ++i)
      if (compiled[i] != 0 && (at_any_rate || has_time())) measure_roughly(tuning_candidates[i]);
  }

  void measure_roughly(TuningCandidate const& candidate) {
    auto trial = std::make_unique<Trial>();
    trial->candidate = candidate;
    try {
      trial->prepared = task_.prepare(device_, with_line(options_, candidate.line));
      make_room(trial->prepared->choice().workspace_bytes);
      trial->call.enqueue = [this, prepared = trial->prepared.get(),
                             next = std::size_t{0}](Stream stream) mutable {
        prepared->run(operands_.pointers(next), workspace_.data(), stream);
        next = (next + 1) % operands_.sets();
      };
      (void)timer_.time_slice(trial->call, 0);
      capture(*trial);
      trial->rough = quantile(timer_.time_slice(trial->call, rough_seconds).samples, 0.5);
      trial->call.forget_graph();   // a later choice may need another workspace
    } catch (Error const& error) {  // the device rejects the kernel
      complaint_ = error.what();
      return;
    }
    trials_.push_back(std::move(trial));
    print_progress(task_.notes.label + ": " + std::to_string(trials_.size()) + " choices measured");
  }

  // The host's time would dominate short single calls. All choices are timed alike: if one cannot be
  // captured, all run as single calls.
  void capture(Trial& trial) {
    if (!as_graphs_) return;
    try {
      timer_.capture(trial.call, operands_.sets());
    } catch (Error const& error) {
      if (error.code() != ErrorCode::system) throw;
      as_graphs_ = false;
    }
  }

  // All kernels run on one stream, so they can share a workspace.
  void make_room(std::size_t bytes) {
    if (bytes <= workspace_bytes_) return;
    cuda::wait(device_.gpu.ordinal, nullptr);
    workspace_ = {};
    workspace_ = cuda::DeviceBuffer(device_.gpu.ordinal, bytes);
    workspace_bytes_ = bytes;
  }

  std::vector<Trial*> fastest() const {
    std::vector<Trial*> list;
    for (auto const& trial : trials_) list.push_back(trial.get());
    std::stable_sort(list.begin(), list.end(), [](Trial* x, Trial* y) { return x->rough < y->rough; });
    return list;
  }

  Trial* next_center() const {
    if (!has_time()) return nullptr;
    std::vector<Trial*> list = fastest();
    list.resize(std::min(list.size(), max_centers));
    auto const found = std::find_if(list.begin(), list.end(), [](Trial* one) { return !one->has_neighbors; });
    return found == list.end() ? nullptr : *found;
  }

  Verdict verdict_on(Trial const& trial) {
    operands_.poison_outputs(0);
    trial.prepared->run(operands_.pointers(0), workspace_.data());
    return verify_sample(task_, operands_.download(0), sampled_elements, random_);
  }

  TuningResult decide(Trial& planned, Trial* incumbent) {
    TuningResult result;
    std::vector<Trial*> finalists = fastest();
    for (Trial const* const one : finalists) {
      result.measured.push_back(one->candidate);
      result.measured.back().line.seconds = one->rough;
    }
    finalists.resize(std::min(finalists.size(), max_finalists));
    for (Trial* const one : {&planned, incumbent})
      if (one != nullptr && std::find(finalists.begin(), finalists.end(), one) == finalists.end())
        finalists.push_back(one);
    std::erase_if(finalists, [&](Trial* one) {
      Verdict const verdict = verdict_on(*one);
      if (!verdict.correct)
        result.failures.push_back(task_.notes.label + ": " + one->candidate.line.kernel + ' ' +
                                  one->candidate.recipe + ": " + verdict.complaint);
      return !verdict.correct;
    });
    if (finalists.empty()) throw Error(ErrorCode::wrong_result, join(result.failures, "; "));
    for (Trial* const one : finalists) capture(*one);
    if (!as_graphs_)
      for (Trial* const one : finalists) one->call.forget_graph();
    result.as_graphs = as_graphs_;
    double const seconds = std::min(rules_.slice_seconds, (1 - share_of_exploration) * rules_.budget_seconds /
                                                              (static_cast<double>(rules_.slices) *
                                                               static_cast<double>(finalists.size())));
    for (long long slice = 0; slice < rules_.slices; ++slice)
      for (std::size_t i = 0; i < finalists.size(); ++i) {
        // Rotates the order, so that every choice is measured in every position.
        Trial& one = *finalists[(i + static_cast<std::size_t>(slice)) % finalists.size()];
        one.medians.push_back(quantile(timer_.time_slice(one.call, seconds).samples, 0.5));
      }
    auto const is_there = [&](Trial* one) {
      return one != nullptr && std::find(finalists.begin(), finalists.end(), one) != finalists.end();
    };
    Trial* best = *std::min_element(finalists.begin(), finalists.end(),
                                    [](Trial* x, Trial* y) { return x->seconds() < y->seconds(); });
    Trial* const base = is_there(incumbent) ? incumbent : is_there(&planned) ? &planned : best;
    if (base != best && !(ratio_of(*base, *best).low > 1)) best = base;
    result.has_kept = best == incumbent;
    result.planned = planned.candidate;
    result.chosen = best->candidate;
    result.chosen.line.seconds = best->seconds();
    result.chosen.line.planned_seconds = is_there(&planned) ? planned.seconds() : best->seconds();
    result.ratio = is_there(&planned) ? ratio_of(planned, *best) : Interval{1, 1, 1};
    result.spent_seconds = spent();
    return result;
  }

  Task& task_;
  TuningChoices const& choices_;
  Device const& device_;
  PlanOptions const& options_;
  TuningRules const& rules_;
  Clock::time_point start_ = Clock::now();
  cuda::Current current_;
  nets::Random random_;
  GpuTimer timer_;
  GpuOperands operands_;
  cuda::DeviceBuffer workspace_;
  std::size_t workspace_bytes_ = 0;
  bool as_graphs_ = true;
  std::set<std::string> seen_;
  std::vector<std::unique_ptr<Trial>> trials_;
  std::string complaint_;  // why the last choice could not be prepared
};

}  // namespace

TuningResult tune_on_gpu(Task& task, TuningChoices const& choices, TuningLine const* known,
                         Device const& device, PlanOptions const& options, TuningRules const& rules,
                         unsigned long long seed) {
  return GpuTuning(task, choices, device, options, rules, seed).tune(known);
}

}  // namespace cosmati::cli
