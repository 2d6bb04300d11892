// One lock and one condition: chunks are large.
#include "nets/dcgan/chunks.h"

#include <algorithm>
#include <utility>

namespace cosmati::dcgan {

Dealer::Dealer(Index first, Index count, Index batch, Index window)
    : count_(count),
      batch_(batch),
      window_(window),
      chunks_((count + batch - 1) / batch),
      next_in_(first / batch),
      next_out_(next_in_),
      computed_(next_in_) {}

std::optional<Chunk> Dealer::take(bool wait) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (failure_ || computed_ == chunks_) return {};
    if (!returned_.empty()) {
      Chunk const chunk = returned_.front();
      returned_.pop_front();
      return chunk;
    }
    if (next_in_ < chunks_ && next_in_ < next_out_ + window_) {
      Index const first = next_in_ * batch_;
      return Chunk{next_in_++, first, std::min(batch_, count_ - first)};
    }
    if (!wait) return {};
    changed_.wait(lock);
  }
}

void Dealer::put(Chunk const& chunk, Images images) {
  std::lock_guard const lock(mutex_);
  waiting_.emplace(chunk.number, std::move(images));
  ++computed_;
  changed_.notify_all();
}

void Dealer::give_back(Chunk const& chunk) {
  std::lock_guard const lock(mutex_);
  // In order: what is written next goes first.
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

std::optional<std::pair<Chunk, Images>> Dealer::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return failure_ || done() || waiting_.contains(next_out_); });
  if (!waiting_.contains(next_out_)) {
    if (failure_) std::rethrow_exception(failure_);
    return {};
  }
  auto node = waiting_.extract(next_out_);
  Index const first = next_out_ * batch_;
  Chunk const chunk{next_out_++, first, std::min(batch_, count_ - first)};
  changed_.notify_all();
  return std::pair{chunk, std::move(node.mapped())};
}

bool Dealer::failed() const {
  std::lock_guard const lock(mutex_);
  return failure_ != nullptr;
}

bool Dealer::computed() const {
  std::lock_guard const lock(mutex_);
  return computed_ == chunks_;
}

}  // namespace cosmati::dcgan
