// Work dealt in chunks to whoever is free, and the places of what comes of it in the files.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

struct Chunk {
  Index number = 0;  // from 0
  Index first = 0, count = 0;
  friend bool operator==(Chunk const&, Chunk const&) = default;
};

// The images of one chunk, contiguous; the memory is reused once no owner is left.
using Images = std::shared_ptr<void const>;

// A computed chunk on its way to the files.
struct Part {
  Chunk chunk;
  Images images;                 // null if another process has them, and will write them
  std::vector<Index> text_ends;  // where the text of each image ends, from the chunk's; empty without text
  Index text_bytes = 0;          // of the chunk as text
  Index text_at = 0;             // where that begins, behind all earlier chunks; Dealer::next() knows
  int rank = 0;                  // who has the images
};

// [first, count) in chunks of `batch`, of which at most `window` are between being dealt and being written:
// that bounds the memory, and what a run that is ended has done in vain. first is a multiple of batch. Safe
// for many threads.
class Dealer {
 public:
  // text_at: where the text of image `first` begins.
  Dealer(Index first, Index count, Index batch, Index window, Index text_at = 0);

  // The next chunk to compute; empty if none is available or, with `wait`, if all have been taken.
  std::optional<Chunk> take(bool wait);
  void put(Part part);  // computed
  // Returns a chunk that was not computed, for another worker.
  void give_back(Chunk const& chunk);

  // Registers a worker. If the last worker leaves before the work is done, next() throws its error, or the
  // one passed to fail().
  void join();
  void leave(std::exception_ptr reason = {});
  void fail(std::exception_ptr reason);

  // The next part with images, in order, when all chunks before it are computed, so that its place in a text
  // is known; none if there is none now, or, with `wait`, after the last one.
  std::optional<Part> next(bool wait = true);
  // Waits until at most `most` parts are ready for next(): who computes faster than it writes leaves the rest
  // of the chunks to others.
  void wait_for_writer(std::size_t most);
  // The same as next() of parts whose images another process has; never waits.
  std::optional<Part> next_elsewhere();

  struct Written {
    Index images = 0, text_at = 0;
  };
  // That part is in the files; returns how many images are, from the first one on, and where their text ends.
  Written written(Chunk const& chunk);

  bool failed() const;
  void rethrow() const;   // what failed, if anything did
  bool computed() const;  // all chunks
  bool complete() const;  // all chunks are written

 private:
  Chunk chunk_of(Index number) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Index count_, batch_, window_, chunks_;
  // The next chunks to be dealt, to be placed, and not yet written; how many are computed.
  Index next_in_, next_out_, unwritten_, computed_;
  Written prefix_;
  Index text_at_;
  std::deque<Chunk> returned_;
  std::map<Index, Part> waiting_;      // for earlier chunks, by number
  std::deque<Part> here_, elsewhere_;  // placed
  std::map<Index, Index> text_end_;    // of chunks that are placed and not in the prefix
  std::set<Index> written_;            // behind chunks that are not
  int takers_ = 0;
  std::exception_ptr failure_;
};

}  // namespace cosmati::dcgan
