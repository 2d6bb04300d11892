// launch(): validates the launch configuration and runs the schedule on several host threads.
#include <algorithm>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cosmati/core/cluster.h"
#include "cosmati/ops/error.h"
#include "src/backend/emulator/machine/schedule.h"

namespace cosmati::emulator {
namespace {

constexpr int max_threads = 1024;     // per block
constexpr int max_blocks_yz = 65535;  // along y and z

std::string text(Grid const& grid) {
  return std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z);
}

void check(Grid const& grid, Grid const& cluster, int threads, int host_threads) {
  if (grid.x < 0 || grid.y < 0 || grid.z < 0)
    throw Error(ErrorCode::bad_request, "a launch of " + text(grid) + " blocks; no extent may be negative");
  if (grid.y > max_blocks_yz || grid.z > max_blocks_yz)
    throw Error(ErrorCode::bad_request,
                "a launch of " + text(grid) + " blocks; y and z may be at most 65535");
  if (cluster.x < 1 || cluster.y < 1 || cluster.z < 1 ||
      std::int64_t{cluster.x} * cluster.y * cluster.z > max_opt_in_cluster_blocks)
    throw Error(ErrorCode::bad_request, "a launch of clusters of " + text(cluster) +
                                            " blocks; each extent must be at least 1, their product " +
                                            std::to_string(max_opt_in_cluster_blocks) + " at most");
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    throw Error(ErrorCode::bad_request,
                "a launch of " + text(grid) + " blocks, not a multiple of its clusters of " + text(cluster));
  if (threads < 1 || threads > max_threads)
    throw Error(ErrorCode::bad_request, "a launch with " + std::to_string(threads) +
                                            " threads per block; valid values: 1 to " +
                                            std::to_string(max_threads));
  if (host_threads < 0)
    throw Error(ErrorCode::bad_request, "a launch on " + std::to_string(host_threads) +
                                            " host threads; expected at least 1, or 0 for one per core");
  if (running != nullptr) throw Error(ErrorCode::bad_request, "a launch from within an emulated kernel");
}

}  // namespace

void launch(Grid grid, int threads, unsigned shared_bytes, void (*body)(void const*), void const* params,
            int host_threads) {
  launch_clusters(grid, {}, threads, shared_bytes, body, params, host_threads);
}

void launch_clusters(Grid grid, Grid cluster, int threads, unsigned shared_bytes, void (*body)(void const*),
                     void const* params, int host_threads) {
  check(grid, cluster, threads, host_threads);
  Work const work{grid, threads, shared_bytes, body, params, cluster};
  if (work.clusters() == 0) return;
  if (host_threads == 0) host_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int const workers = static_cast<int>(std::min<std::int64_t>(host_threads, work.clusters()));

  Schedule schedule(work, workers);
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(workers - 1));
  for (int worker = 1; worker < workers; ++worker) {
    try {
      others.emplace_back(&Schedule::run, &schedule, worker);
    } catch (std::system_error const&) {  // no more threads: the existing ones do all the work
      schedule.leave_out(worker);
    }
  }
  schedule.run(0);
  for (std::thread& other : others) other.join();
  schedule.conclude();
}

}  // namespace cosmati::emulator
