// The clusters of one launch, distributed over host threads. A host thread starts a cluster when all clusters
// that it started before are finished or waiting. After a failure the launch continues until every cluster
// before the failed one is finished, has failed, or cannot continue: which failure is the first in the grid
// does not depend on the host threads.
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

  // Runs the share of host thread `worker`, 0 <= worker < workers.
  void run(int worker) noexcept;
  // Excludes a worker whose thread could not be created.
  void leave_out(int worker) { quiet_since(worker) = left; }
  // Throws the first failure, after all workers have returned.
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
  std::int64_t next_index();  // the next cluster to start; none: all have started
  void close(std::int64_t index, bool failed);

  enum class Stop : unsigned char { no, failed, deadlock };
  static constexpr std::uint64_t left = ~std::uint64_t{0};
  std::atomic<std::uint64_t>& quiet_since(int worker) {
    return quiet_since_[static_cast<std::size_t>(worker)];
  }

  Work const work_;
  std::atomic<std::uint64_t> progress_{1};  // number of turns that made progress
  std::atomic<Stop> stop_{Stop::no};
  // For each worker: the value of progress_ at which none of its blocks could continue; 0: not yet.
  std::vector<std::atomic<std::uint64_t>> quiet_since_;
  std::mutex mutex_;  // protects the following members
  std::int64_t next_ = 0;
  std::set<std::int64_t> open_;
  std::int64_t first_failed_ = none;
  std::vector<Failure> failures_;
};

}  // namespace cosmati::emulator
