// The blocks of a cluster; a single block if the launch has no clusters. They run concurrently on one host
// thread.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "src/backend/emulator/machine/block.h"

namespace cosmati::emulator {

class Cluster {
 public:
  explicit Cluster(Work const& work);

  // Makes this the cluster at `index` of the grid of clusters (x fastest).
  void start(std::int64_t index);
  bool take_turns();
  bool is_finished() const;
  bool has_failed() const;
  void unwind();
  std::vector<std::unique_ptr<Block>> const& blocks() const { return blocks_; }
  Block& block(int rank) const { return *blocks_[static_cast<std::size_t>(rank)]; }
  std::int64_t index() const { return index_; }
  int size() const { return static_cast<int>(blocks_.size()); }

  // The barrier of the cluster.
  void arrive(Thread& thread);
  void wait(Thread& thread);
  void leave(Thread const& thread);
  int missing() const { return alive_ - arrived_; }

  // Whether threads may have written to other blocks' shared memory.
  bool reaches_others = false;
  // Attributes the changes during a turn of `thread` to it (ordinary_writes.h).
  void attribute_writes(Thread const& thread);

 private:
  void complete();

  Work const& work_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::int64_t index_ = 0;
  int alive_ = 0, arrived_ = 0, left_ = 0;  // numbers of threads; left_: arrived threads that have since
                                            // exited
  std::int64_t phase_ = 0;
  char sync_[2] = {0, 0};
};

}  // namespace cosmati::emulator
