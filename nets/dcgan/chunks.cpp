// A queue of chunks; since chunks are large, one lock and one condition variable suffice.
#include "nets/dcgan/chunks.h"

#include <algorithm>
#include <utility>

#include "src/parallel/wait.h"

namespace cosmati::dcgan {

Dealer::Dealer(Index first, Index count, Index batch, Index window, Index text_at)
    : count_(count),
      batch_(batch),
      window_(window),
      chunks_((count + batch - 1) / batch),
      next_in_((first + batch - 1) / batch),
      next_out_(next_in_),
      unwritten_(next_in_),
      computed_(next_in_),
      prefix_{first, text_at},
      text_at_(text_at) {}

Chunk Dealer::chunk_of(Index number) const {
  Index const first = number * batch_;
  return {number, first, std::min(batch_, count_ - first)};
}

std::optional<Chunk> Dealer::take(bool wait) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (failure_ || computed_ == chunks_) return {};
    if (!returned_.empty()) {
      Chunk const chunk = returned_.front();
      returned_.pop_front();
      return chunk;
    }
    if (next_in_ < chunks_ && next_in_ < unwritten_ + window_) return chunk_of(next_in_++);
    if (!wait) return {};
    parallel::wait(changed_, lock);
  }
}

void Dealer::put(Part part) {
  std::lock_guard const lock(mutex_);
  Index const number = part.chunk.number;
  waiting_.emplace(number, std::move(part));
  ++computed_;
  while (waiting_.contains(next_out_)) {
    Part placed = std::move(waiting_.extract(next_out_).mapped());
    placed.text_at = text_at_;
    text_at_ += placed.text_bytes;
    text_end_[next_out_++] = text_at_;
    (placed.rank == 0 ? here_ : elsewhere_).push_back(std::move(placed));
  }
  changed_.notify_all();
}

void Dealer::give_back(Chunk const& chunk) {
  std::lock_guard const lock(mutex_);
  // Sorted by number, so that the chunk to be written next comes first.
  returned_.insert(std::upper_bound(returned_.begin(), returned_.end(), chunk,
                                    [](Chunk const& a, Chunk const& b) { return a.number < b.number; }),
                   chunk);
  changed_.notify_all();
}

void Dealer::join() {
  std::lock_guard const lock(mutex_);
  ++takers_;
}

void Dealer::leave(std::exception_ptr reason) {
  std::lock_guard const lock(mutex_);
  if (--takers_ == 0 && computed_ < chunks_ && !failure_) failure_ = std::move(reason);
  changed_.notify_all();
}

void Dealer::fail(std::exception_ptr reason) {
  std::lock_guard const lock(mutex_);
  if (!failure_) failure_ = std::move(reason);
  changed_.notify_all();
}

std::optional<Part> Dealer::next(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait)
    parallel::wait(changed_, lock, [&] { return failure_ || next_out_ == chunks_ || !here_.empty(); });
  if (here_.empty()) {
    if (wait && failure_) std::rethrow_exception(failure_);
    return {};
  }
  Part part = std::move(here_.front());
  here_.pop_front();
  changed_.notify_all();
  return part;
}

void Dealer::wait_for_writer(std::size_t maximum) {
  std::unique_lock lock(mutex_);
  parallel::wait(changed_, lock, [&] { return failure_ || here_.size() <= maximum; });
}

std::optional<Part> Dealer::next_elsewhere() {
  std::lock_guard const lock(mutex_);
  if (elsewhere_.empty()) return {};
  Part part = std::move(elsewhere_.front());
  elsewhere_.pop_front();
  return part;
}

Dealer::Written Dealer::written(Chunk const& chunk) {
  std::lock_guard const lock(mutex_);
  written_.insert(chunk.number);
  while (written_.erase(unwritten_) > 0) {
    Chunk const last = chunk_of(unwritten_);
    prefix_ = {last.first + last.count, text_end_.extract(unwritten_++).mapped()};
  }
  changed_.notify_all();
  return prefix_;
}

bool Dealer::failed() const {
  std::lock_guard const lock(mutex_);
  return failure_ != nullptr;
}

void Dealer::rethrow() const {
  std::lock_guard const lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

bool Dealer::computed() const {
  std::lock_guard const lock(mutex_);
  return computed_ == chunks_;
}

bool Dealer::complete() const {
  std::lock_guard const lock(mutex_);
  return unwritten_ == chunks_;
}

}  // namespace cosmati::dcgan
