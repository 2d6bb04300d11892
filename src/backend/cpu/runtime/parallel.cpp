// Thread teams on the OpenMP runtime, with workarounds: libgomp terminates the program if the system refuses
// to create a thread, and its pool does not survive a fork.
#include "src/backend/cpu/runtime/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <latch>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/backend/cpu/runtime/omp_runtime.h"

namespace cosmati::cpu {
namespace {

struct Team {
  int parts;
  void (*body)(void*, int, int);
  void* context;
  OmpRuntime const* runtime;
  std::mutex failing{};
  int failed_part = -1;
  std::exception_ptr failure{};

  void run(int part) noexcept {
    try {
      body(context, part, parts);
    } catch (...) {
      std::lock_guard const lock(failing);
      if (failed_part >= 0 && failed_part < part) return;
      failed_part = part;
      failure = std::current_exception();
    }
  }
};

// A team may be smaller than requested (nesting, thread limit); each member then processes several parts.
void run_member(void* data) {
  Team& team = *static_cast<Team*>(data);
  for (int part = team.runtime->thread_num(); part < team.parts; part += team.runtime->num_threads())
    team.run(part);
}

// The state of the calling thread's pool; each thread that starts teams has its own.
struct PoolState {
  int threads = 1;    // the largest team that the pool has had
  bool lost = false;  // the pool belongs to the parent process, which forked this one
  int refused = 0;    // threads available when the system last refused to create more
  std::chrono::steady_clock::time_point refused_until{};
};
thread_local PoolState pool;

// After a fork, the child has only the forking thread, and libgomp would wait for the pool forever. So the
// pool is shut down before the fork, and parent and child each start a new one when they next need it.
void end_pool_before_fork() {
  constexpr int soft = 1;  // omp_pause_soft
  if (pool.threads == 1) return;
  OmpRuntime const* const runtime = omp_runtime();
  pool.lost = runtime->pause_all == nullptr || runtime->pause_all(soft) != 0;
  if (!pool.lost) pool.threads = 1;
}
// In the parent, a pool that could not be shut down still works.
void keep_pool_of_parent() { pool.lost = false; }

// Returns how many threads, including the caller, can exist at the same time, up to `wanted`.
int count_threads(int wanted) {
  std::latch counted(1);
  std::vector<std::thread> threads;
  try {
    threads.reserve(static_cast<std::size_t>(wanted));
    while (static_cast<int>(threads.size()) + 1 < wanted) threads.emplace_back([&] { counted.wait(); });
  } catch (std::system_error const&) {  // limit of the user, container or memory
  } catch (std::bad_alloc const&) {
  }
  counted.count_down();
  for (std::thread& thread : threads) thread.join();
  return static_cast<int>(threads.size()) + 1;
}

// The size of the team that this thread can start now, up to `wanted`. It is smaller if the system refuses
// threads; libgomp must not run into that itself, because it would terminate the program.
int team_to_be_had(OmpRuntime const* runtime, int wanted) {
  if (wanted <= pool.threads && !pool.lost) return wanted;
  if (runtime == nullptr || pool.lost) return 1;
  if (runtime->in_parallel() != 0) return wanted;  // a nested team has no additional threads
  wanted = std::min(wanted, runtime->thread_limit());
  if (wanted <= pool.threads) return wanted;
  auto const now = std::chrono::steady_clock::now();
  if (pool.refused > 0 && now < pool.refused_until) return std::min(wanted, pool.refused);
  int const given = count_threads(wanted);
  pool.refused = given < wanted ? given : 0;
  pool.refused_until = now + std::chrono::seconds(1);
  if (given <= pool.threads) return given;
  static int const registered = pthread_atfork(end_pool_before_fork, keep_pool_of_parent, nullptr);
  static_cast<void>(registered);
  // Starts the pool's threads now, before something else uses the limit. Each thread also allocates its
  // malloc arena (64 MiB of address space), so that later checks of the remaining address space account for
  // it.
  runtime->parallel(
      [](void*) {
        void* volatile const block = std::malloc(1);
        std::free(block);
      },
      nullptr, static_cast<unsigned>(given), 0);
  pool.threads = given;
  return given;
}

}  // namespace

void run_parts(int parts, void (*body)(void*, int, int), void* context) {
  OmpRuntime const* const runtime = omp_runtime();
  Team team{parts, body, context, runtime};
  int const members = team_to_be_had(runtime, parts);
  if (members > 1)
    runtime->parallel(run_member, &team, static_cast<unsigned>(members), 0);
  else
    for (int part = 0; part < parts; ++part) team.run(part);
  if (team.failure) std::rethrow_exception(team.failure);
}

int threads_to_be_had(int wanted) {
  static std::mutex counting;
  static int maximum = 1;
  if (wanted <= 1 || omp_runtime() == nullptr) return 1;
  std::lock_guard const lock(counting);
  if (wanted > maximum) {
    int const given = count_threads(wanted);
    if (given < wanted) return given;
    maximum = wanted;
  }
  return wanted;
}

ThreadCount::ThreadCount(int threads) {
  OmpRuntime const* const runtime = omp_runtime();
  int const given = team_to_be_had(runtime, threads);
  if (given < threads)
    throw Error(ErrorCode::system, "the plan is for " + std::to_string(threads) +
                                       " threads, but the system provides " + std::to_string(given) +
                                       " now (ulimit -u, or OMP_THREAD_LIMIT); plan for fewer threads");
  if (runtime == nullptr) return;
  before_ = runtime->max_threads();
  if (threads != before_) runtime->set_num_threads(threads);
}
ThreadCount::~ThreadCount() {
  OmpRuntime const* const runtime = omp_runtime();
  if (runtime != nullptr && runtime->max_threads() != before_) runtime->set_num_threads(before_);
}

}  // namespace cosmati::cpu
