// Work that is assigned in chunks to idle workers, and the positions of its results in the files.
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

// A computed chunk to be written to the files.
struct Part {
  Chunk chunk;
  Images images;  // null if another process has them and will write them
  // Where the text of each image ends, relative to the chunk's; empty without text.
  std::vector<Index> text_ends;
  Index text_bytes = 0;  // of the chunk's text
  // Position of the chunk's text, after all earlier chunks; set by Dealer::next().
  Index text_at = 0;
  int rank = 0;  // the process that has the images
};

// Divides [first, count) into chunks of `batch`, of which at most `window` are assigned but not yet written:
// this bounds the memory, and the work lost if a run is interrupted. first is a multiple of batch.
// Thread-safe.
class Dealer {
 public:
  // text_at: the position of the text of image `first`.
  Dealer(Index first, Index count, Index batch, Index window, Index text_at = 0);

  // The next chunk to compute; empty if none is available or, with `wait`, if all have been taken.
  std::optional<Chunk> take(bool wait);
  void put(Part part);  // a computed part
  // Returns a chunk that was not computed, for another worker.
  void give_back(Chunk const& chunk);

  // Registers a worker. If the last worker leaves before the work is done, next() throws its error, or the
  // one passed to fail().
  void join();
  void leave(std::exception_ptr reason = {});
  void fail(std::exception_ptr reason);

  // Returns the next part with images, in order, when all chunks before it are computed, so that its position
  // in the text is known; none if none is available or, with `wait`, after the last one.
  std::optional<Part> next(bool wait = true);
  // Waits until at most `maximum` parts are ready for next(), so that a process that computes faster than it
  // writes leaves chunks to others.
  void wait_for_writer(std::size_t maximum);
  // The same as next() for parts whose images another process has; never waits.
  std::optional<Part> next_elsewhere();

  struct Written {
    Index images = 0, text_at = 0;
  };
  // Marks a part as written; returns the number of written images from the first one on, and the end of their
  // text.
  Written written(Chunk const& chunk);

  bool failed() const;
  void rethrow() const;   // rethrows the failure, if any
  bool computed() const;  // all chunks
  bool complete() const;  // all chunks are written

 private:
  Chunk chunk_of(Index number) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Index count_, batch_, window_, chunks_;
  // The numbers of the next chunk to assign, the next to place, and the first unwritten one; how many are
  // computed.
  Index next_in_, next_out_, unwritten_, computed_;
  Written prefix_;
  Index text_at_;
  std::deque<Chunk> returned_;
  std::map<Index, Part> waiting_;      // parts that wait for earlier chunks, by number
  std::deque<Part> here_, elsewhere_;  // placed
  std::map<Index, Index> text_end_;    // text ends of placed chunks that are not in the prefix
  std::set<Index> written_;            // written chunks that follow unwritten ones
  int takers_ = 0;
  std::exception_ptr failure_;
};

}  // namespace cosmati::dcgan
