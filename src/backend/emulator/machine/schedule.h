// The clusters of blocks of one launch, spread over host threads. A host thread opens one when all that it
// has opened before are finished, or wait. After a failure the launch goes on until every cluster before the
// one that failed is finished, has failed as well, or waits for what does not come: which failure is the
// first of the grid does not depend on the host threads.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "src/backend/emulator/machine/cluster.h"
#include "src/backend/emulator/machine/report.h"

namespace cosmati::emulator {

class Schedule {
 public:
  Schedule(Work const& work, int workers);

  // The part of host thread `worker`, 0 <= worker < workers.
  void run(int worker) noexcept;
  // A worker that could not be had.
  void leave_out(int worker) { quiet_since(worker) = left; }
  // Once all have run: throws what went wrong.
  void conclude();

 private:
  struct Clusters {
    std::vector<std::unique_ptr<Cluster>> open, idle;
  };
  static constexpr std::int64_t none = -1;
  void run_clusters(int worker, Clusters& clusters);
  bool open_next(Clusters& clusters);
  bool take_turns(Clusters& clusters);
  bool nobody_can_go_on(std::uint64_t since) const;
  void record(Failure failure);
  std::int64_t next_index();  // of the next cluster to open; none: all are
  void close(std::int64_t index, bool failed);

  enum class Stop : unsigned char { no, failed, deadlock };
  static constexpr std::uint64_t left = ~std::uint64_t{0};
  std::atomic<std::uint64_t>& quiet_since(int worker) {
    return quiet_since_[static_cast<std::size_t>(worker)];
  }

  Work const work_;
  std::atomic<std::uint64_t> progress_{1};  // counts the turns of which something came
  std::atomic<Stop> stop_{Stop::no};
  // For each worker: the count of progress at which all its blocks were asked in vain; 0: not yet.
  std::vector<std::atomic<std::uint64_t>> quiet_since_;
  std::mutex mutex_;  // of what follows
  std::int64_t next_ = 0;
  std::set<std::int64_t> open_;
  std::int64_t first_failed_ = none;
  std::vector<Failure> failures_;
};

}  // namespace cosmati::emulator
