// Decides which block runs when, and detects deadlocks. Emulated threads never move between host threads.
#include "src/backend/emulator/machine/schedule.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace cosmati::emulator {

Schedule::Schedule(Work const& work, int workers)
    : work_(work), quiet_since_(static_cast<std::size_t>(workers)) {}

void Schedule::run(int worker) noexcept {
  Clusters clusters;
  try {
    run_clusters(worker, clusters);
  } catch (...) {  // out of memory
    record({work_.clusters(), false, "a block cannot be created: ", std::current_exception()});
    stop_ = Stop::failed;
  }
  for (auto const& cluster : clusters.open) cluster->unwind();
  quiet_since(worker) = left;
}

void Schedule::run_clusters(int worker, Clusters& clusters) {
  while (stop_ == Stop::no) {
    std::uint64_t const before = progress_;
    if (take_turns(clusters)) {
      ++progress_;
      continue;
    }
    if (stop_ != Stop::no || open_next(clusters)) continue;
    if (clusters.open.empty()) return;
    // All blocks of this worker wait and no cluster is left to start: only another host thread can make
    // progress.
    quiet_since(worker) = before;
    if (nobody_can_go_on(before))
      stop_ = Stop::deadlock;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (stop_ == Stop::deadlock)
    for (auto const& cluster : clusters.open)
      for (auto const& block : cluster->blocks())
        if (!block->is_finished()) record(explain(*block));
}

bool Schedule::open_next(Clusters& clusters) {
  std::int64_t const index = next_index();
  if (index == none) return false;
  if (clusters.idle.empty()) clusters.idle.push_back(std::make_unique<Cluster>(work_));
  clusters.open.push_back(std::move(clusters.idle.back()));
  clusters.idle.pop_back();
  clusters.open.back()->start(index);
  return true;
}

std::int64_t Schedule::next_index() {
  std::scoped_lock const lock(mutex_);
  if (next_ >= work_.clusters()) return none;
  open_.insert(next_);
  return next_++;
}

// Closes a cluster; stops the launch as soon as the first failed cluster of the grid is known.
void Schedule::close(std::int64_t index, bool failed) {
  std::scoped_lock const lock(mutex_);
  open_.erase(index);
  if (failed && (first_failed_ == none || index < first_failed_)) first_failed_ = index;
  std::int64_t const first_open = open_.empty() ? next_ : *open_.begin();
  if (first_failed_ != none && first_failed_ < first_open) stop_ = Stop::failed;
}

// Runs all open clusters once; returns false if none made progress.
bool Schedule::take_turns(Clusters& clusters) {
  bool progress = false;
  for (std::size_t i = 0; i < clusters.open.size();) {
    Cluster& cluster = *clusters.open[i];
    progress |= cluster.take_turns();
    if (cluster.has_failed()) {
      for (auto const& block : cluster.blocks())
        if (block->has_failed()) record(explain(*block));
      cluster.unwind();
      close(cluster.index(), true);
      clusters.open.erase(clusters.open.begin() + static_cast<std::ptrdiff_t>(i));
      progress = true;
      continue;
    }
    if (!cluster.is_finished()) {
      ++i;
      continue;
    }
    close(cluster.index(), false);
    clusters.idle.push_back(std::move(clusters.open[i]));
    clusters.open.erase(clusters.open.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return progress;
}

bool Schedule::nobody_can_go_on(std::uint64_t since) const {
  for (auto const& quiet : quiet_since_)
    if (std::uint64_t const worker_since = quiet; worker_since != since && worker_since != left) return false;
  return progress_ == since;
}

void Schedule::record(Failure failure) {
  std::scoped_lock const lock(mutex_);
  failures_.push_back(std::move(failure));
}

void Schedule::conclude() {
  if (failures_.empty()) return;
  // Blocks that only wait are sorted after those that may be the cause; within each kind, the first block of
  // the grid is reported.
  std::sort(failures_.begin(), failures_.end(), [](Failure const& a, Failure const& b) {
    return a.only_waits != b.only_waits ? b.only_waits : a.block < b.block;
  });
  constexpr std::size_t max_told = 4;
  Failure failure = failures_.front();
  if (failure.only_waits) {
    for (std::size_t i = 1; i < failures_.size() && i < max_told; ++i)
      failure.message += "; " + failures_[i].message;
    if (failures_.size() > max_told)
      failure.message += "; " + std::to_string(failures_.size() - max_told) + " more blocks wait";
  }
  raise(failure);
}

}  // namespace cosmati::emulator
