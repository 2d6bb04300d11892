// Benchmarks one problem on the CPU, interleaved with its peers.
#include "cli/bench/interleaved.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "cli/bench/peers/torch_peer.h"
#include "cli/data/random_data.h"
#include "cli/machine.h"
#include "cli/options/placement.h"
#include "cli/output/table.h"

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Threads of the last participant may still be spinning, waiting for work.
void let_threads_sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

struct Operands {
  std::vector<Tensor> tensors;
  std::vector<void*> pointers;
};

Operands make_operands(Task& task, Index misalignment, nets::Random& random) {
  Operands set;
  for (Slot const& slot : task.slots()) {
    Tensor drawn(slot.description);
    std::memset(drawn.data(), 0, drawn.bytes());
    if (slot.role != Role::output) fill_random(drawn, slot.name, {false, task.notes.classes}, random);
    if (misalignment == 0) {
      set.tensors.push_back(std::move(drawn));
      set.pointers.push_back(set.tensors.back().data());
      continue;
    }
    Index const offset = offset_of(slot.description, misalignment);
    set.tensors.emplace_back(DataType::u8, Shape(offset + static_cast<Index>(drawn.bytes())));
    set.pointers.push_back(set.tensors.back().as<unsigned char>() + offset);
    std::memcpy(set.pointers.back(), drawn.data(), drawn.bytes());
  }
  return set;
}

long long sets_needed(long long bytes, Device const& device, bool hot) {
  if (hot || bytes == 0) return 1;
  long long const caches = 2 * std::max<long long>(device.l2_bytes, 1 << 20) * device.threads;
  return std::clamp<long long>((caches + bytes - 1) / bytes, 1, 64);
}

double median_of_minima(std::vector<Slice> const& slices, std::size_t from, std::size_t to) {
  std::vector<double> minima;
  for (std::size_t i = from; i < to; ++i) minima.push_back(slices[i].minimum);
  return quantile(minima, 0.5);
}

Times times_of(std::vector<Slice> const& slices) {
  std::vector<double> samples;
  for (Slice const& slice : slices) samples.insert(samples.end(), slice.samples.begin(), slice.samples.end());
  double const best = median_of_minima(slices, 0, slices.size());
  return {quantile(samples, 0.5),
          quantile(samples, 0.05),
          quantile(samples, 0.95),
          best,
          best,
          static_cast<long long>(samples.size())};
}

std::vector<void const*> read_only(Operands const& set) { return {set.pointers.begin(), set.pointers.end()}; }

// A peer and its measurements.
struct Opponent {
  explicit Opponent(std::string const& peer) : name(peer) {}

  // Null if the peer does not compute this problem.
  TimedPeer* timed() const {
    if (torch == nullptr) return library.get();
    return torch->refusal().empty() ? torch.get() : nullptr;
  }
  PeerResult result() const {
    PeerResult one;
    one.name = name;
    if (torch != nullptr) {
      one.refusal = torch->refusal();
      one.algorithm = torch->algorithm();
      one.tried = torch->tried();
    }
    one.version = torch != nullptr ? torch->version() : library->version();
    if (timed() == nullptr) return one;
    one.seconds = quantile(minima, 0.5);
    one.ratio = median_interval(ratios);
    return one;
  }

  std::string name;
  std::unique_ptr<PeerProcess> library;  // either this or `torch` is set
  std::unique_ptr<TorchPeer> torch;
  std::vector<double> minima, ratios;  // one value per slice
};

// The shortest host time of a call without its kernel, over several groups of calls.
std::optional<double> host_seconds_of(PreparedTask const& prepared, std::vector<void*> const& pointers,
                                      void* workspace) {
  constexpr int groups = 20, calls = 200;
  auto const idle = prepared.without_kernel();
  if (idle == nullptr) return {};
  double minimum = 0;
  for (int group = 0; group < groups; ++group) {
    double const seconds = seconds_of([&] {
                             for (int i = 0; i < calls; ++i) idle->run(pointers, workspace);
                           }) /
                           calls;
    minimum = group == 0 ? seconds : std::min(minimum, seconds);
  }
  return minimum;
}

}  // namespace

InterleavedResult run_interleaved(Task& task, Device const& device, PlanOptions const& options,
                                  InterleavedRules const& rules, std::vector<PeerProblem> peers,
                                  unsigned long long seed) {
  InterleavedResult result;
  nets::Random random(seed, 3);
  // An array that is updated in place is both read and written.
  for (Slot const& slot : task.slots())
    result.bytes += slot.description.bytes() * (slot.role == Role::in_out ? 2 : 1);
  result.buffers = sets_needed(result.bytes, device, rules.hot);
  std::vector<Operands> sets;
  for (long long i = 0; i < result.buffers; ++i)
    sets.push_back(make_operands(task, rules.misalignment, random));

  auto const start = Clock::now();
  auto const prepared = task.prepare(device, options);
  result.prepare_seconds = seconds_since(start);
  result.choice = prepared->choice();
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(result.choice.workspace_bytes)));
  auto const call = [&, next = std::size_t{0}]() mutable {
    prepared->run(sets[next].pointers, workspace.data());
    next = (next + 1) % sets.size();
  };
  std::function<void()> const ours = call;
  auto const first = Clock::now();
  ours();
  result.first_call_seconds = seconds_since(first);

  std::vector<Opponent> opponents;
  for (PeerProblem& peer : peers) {
    peer.buffers = result.buffers;
    opponents.emplace_back(peer.peer);
    if (peer.peer == "torch")
      opponents.back().torch = std::make_unique<TorchPeer>(
          task, device, options, TorchPeer::Rules{peer.python, result.buffers}, read_only(sets.front()));
    else
      opponents.back().library = std::make_unique<PeerProcess>(peer);
    if (TimedPeer* const other = opponents.back().timed()) other->time(0);
  }
  let_threads_sleep();
  result.settled = warm_up(ours);

  std::vector<Slice> slices;
  for (long long i = 0; i < rules.slices; ++i) {
    print_progress(task.notes.label + ": slice " + std::to_string(i + 1) + " of " +
                   std::to_string(rules.slices));
    let_threads_sleep();
    slices.push_back(time_slice(ours, rules.slice_seconds));
    for (Opponent& one : opponents) {
      if (one.timed() == nullptr) continue;
      let_threads_sleep();
      one.minima.push_back(one.timed()->time(rules.slice_seconds).minimum);
      one.ratios.push_back(one.minima.back() / slices.back().minimum);
    }
  }
  result.ours = times_of(slices);
  result.host_seconds = host_seconds_of(*prepared, sets.front().pointers, workspace.data());
  std::size_t const half = slices.size() / 2;
  if (half > 0)
    result.steady = median_of_minima(slices, half, slices.size()) <= 1.1 * median_of_minima(slices, 0, half);
  for (Opponent& one : opponents) {
    result.peers.push_back(one.result());
    if (one.torch == nullptr || one.timed() == nullptr) continue;
    prepared->run(sets.front().pointers, workspace.data());
    result.peers.back().sample = one.torch->verdict(read_only(sets.front()), rules.max_verified);
  }
  return result;
}

}  // namespace cosmati::cli
