// Work dealt in chunks to whoever is free, and put into order again.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

struct Chunk {
  Index number = 0;  // from 0
  Index first = 0, count = 0;
  friend bool operator==(Chunk const&, Chunk const&) = default;
};

// Of one chunk, one after the other; memory that is used again when nobody owns it any more.
using Images = std::shared_ptr<void const>;

// [first, count) in chunks of `batch`, of which at most `window` are between being dealt and being taken in
// order: that bounds the memory. first is a multiple of batch. Safe for many threads.
class Dealer {
 public:
  Dealer(Index first, Index count, Index batch, Index window);

  // The next chunk to compute; none if there is none now, or, with `wait`, if there will be none any more.
  std::optional<Chunk> take(bool wait);
  void put(Chunk const& chunk, Images images);
  // It was not computed: somebody else takes it.
  void give_back(Chunk const& chunk);

  // Those who take chunks. When the last of them has left with work still to do, next() throws what it told,
  // or what fail() was told.
  void join();
  void leave(std::exception_ptr reason = {});
  void fail(std::exception_ptr reason);

  // The next chunk in order, when it is there; none after the last one.
  std::optional<std::pair<Chunk, Images>> next();
  bool failed() const;
  // All chunks are computed.
  bool computed() const;

 private:
  bool done() const { return next_out_ == chunks_; }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Index count_, batch_, window_, chunks_;
  Index next_in_, next_out_, computed_;
  std::deque<Chunk> returned_;
  std::map<Index, Images> waiting_;
  int takers_ = 0;
  std::exception_ptr failure_;
};

}  // namespace cosmati::dcgan
