// Which block runs when, and when nothing can go on. Emulated threads never move between host threads.
#include "src/backend/emulator/schedule.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

namespace cosmati::emulator {

Schedule::Schedule(Work const& work, int workers)
    : work_(work), quiet_since_(static_cast<std::size_t>(workers)) {}

void Schedule::run(int worker) noexcept {
  Blocks blocks;
  try {
    run_blocks(worker, blocks);
  } catch (...) {  // no memory for a block
    record({next_, false, "a block cannot be opened: ", std::current_exception()});
    stop_ = Stop::failed;
  }
  for (auto const& block : blocks.open) block->unwind();
  quiet_since(worker) = left;
}

void Schedule::run_blocks(int worker, Blocks& blocks) {
  while (stop_ == Stop::no) {
    std::uint64_t const before = progress_;
    if (take_turns(blocks)) {
      ++progress_;
      continue;
    }
    if (stop_ != Stop::no || open_next(blocks)) continue;
    if (blocks.open.empty()) return;
    // All wait, and no block is left to open: what they wait for must come from another host thread.
    quiet_since(worker) = before;
    if (nobody_can_go_on(before))
      stop_ = Stop::deadlock;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (stop_ == Stop::deadlock)
    for (auto const& block : blocks.open) record(explain(*block));
}

bool Schedule::open_next(Blocks& blocks) {
  if (next_ >= work_.blocks()) return false;
  std::int64_t const index = next_++;
  if (index >= work_.blocks()) return false;
  if (blocks.idle.empty()) blocks.idle.push_back(std::make_unique<Block>(work_));
  blocks.open.push_back(std::move(blocks.idle.back()));
  blocks.idle.pop_back();
  blocks.open.back()->start(index);
  return true;
}

// False if nothing came of it.
bool Schedule::take_turns(Blocks& blocks) {
  bool progress = false;
  for (std::size_t i = 0; i < blocks.open.size();) {
    Block& block = *blocks.open[i];
    progress |= block.take_turns();
    if (block.has_failed()) {
      record(explain(block));
      stop_ = Stop::failed;
      return false;
    }
    if (!block.is_finished()) {
      ++i;
      continue;
    }
    blocks.idle.push_back(std::move(blocks.open[i]));
    blocks.open.erase(blocks.open.begin() + static_cast<std::ptrdiff_t>(i));
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
  // Blocks that only wait come after what may be the cause of it; of several, the first of the grid is
  // reported.
  std::sort(failures_.begin(), failures_.end(), [](Failure const& a, Failure const& b) {
    return a.only_waits != b.only_waits ? b.only_waits : a.block < b.block;
  });
  constexpr std::size_t most_told = 4;
  Failure failure = failures_.front();
  if (failure.only_waits) {
    for (std::size_t i = 1; i < failures_.size() && i < most_told; ++i)
      failure.message += "; " + failures_[i].message;
    if (failures_.size() > most_told)
      failure.message += "; " + std::to_string(failures_.size() - most_told) + " more blocks wait";
  }
  raise(failure);
}

}  // namespace cosmati::emulator
