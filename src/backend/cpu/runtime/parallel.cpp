// Teams of threads by the OpenMP runtime, with workarounds: it would terminate the program if the system
// refuses a thread, and its pool does not survive a fork.
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

// A team may come out smaller than asked for (nested, or a limit): each member then takes several parts.
void run_member(void* data) {
  Team& team = *static_cast<Team*>(data);
  for (int part = team.runtime->thread_num(); part < team.parts; part += team.runtime->num_threads())
    team.run(part);
}

// What this thread knows of its pool; each thread that starts teams has one of its own.
struct PoolState {
  int threads = 1;    // the largest team that the pool has had
  bool lost = false;  // it stayed behind in the process that forked this one
  int refused = 0;    // threads that the system gave when it refused more
  std::chrono::steady_clock::time_point refused_until{};
};
thread_local PoolState pool;

// A child has no threads but the one that forked: libgomp would wait for its pool there forever. So the pool
// ends before, and parent and child each start a new one when they next need it.
void end_pool_before_fork() {
  constexpr int soft = 1;  // omp_pause_soft
  if (pool.threads == 1) return;
  OmpRuntime const* const runtime = omp_runtime();
  pool.lost = runtime->pause_all == nullptr || runtime->pause_all(soft) != 0;
  if (!pool.lost) pool.threads = 1;
}
// The parent still has a pool that could not be ended.
void keep_pool_of_parent() { pool.lost = false; }

// So many threads, the caller included, can live at the same time; at most `wanted`.
int count_threads(int wanted) {
  std::latch counted(1);
  std::vector<std::thread> threads;
  try {
    threads.reserve(static_cast<std::size_t>(wanted));
    while (static_cast<int>(threads.size()) + 1 < wanted) threads.emplace_back([&] { counted.wait(); });
  } catch (std::system_error const&) {  // a limit of the user, of the container or of memory
  } catch (std::bad_alloc const&) {
  }
  counted.count_down();
  for (std::thread& thread : threads) thread.join();
  return static_cast<int>(threads.size()) + 1;
}

// The members of a team of `wanted` that this thread may start now: fewer where the system refuses threads,
// which libgomp must not find out by itself.
int team_to_be_had(OmpRuntime const* runtime, int wanted) {
  if (wanted <= pool.threads && !pool.lost) return wanted;
  if (runtime == nullptr || pool.lost) return 1;
  if (runtime->in_parallel() != 0) return wanted;  // a nested team has no threads of its own
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
  // The pool takes the threads at once, before anybody else does; and each thread its heap (64 MiB of address
  // space), so that it shows whether a limit leaves enough for what comes later.
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
  static int most = 1;
  if (wanted <= 1 || omp_runtime() == nullptr) return 1;
  std::lock_guard const lock(counting);
  if (wanted > most) {
    int const given = count_threads(wanted);
    if (given < wanted) return given;
    most = wanted;
  }
  return wanted;
}

ThreadCount::ThreadCount(int threads) {
  OmpRuntime const* const runtime = omp_runtime();
  int const given = team_to_be_had(runtime, threads);
  if (given < threads)
    throw Error(ErrorCode::system, "this was planned for " + std::to_string(threads) +
                                       " threads, and the system gives " + std::to_string(given) +
                                       " now (ulimit -u, or OMP_THREAD_LIMIT); plan it for fewer");
  if (runtime == nullptr) return;
  before_ = runtime->max_threads();
  if (threads != before_) runtime->set_num_threads(threads);
}
ThreadCount::~ThreadCount() {
  OmpRuntime const* const runtime = omp_runtime();
  if (runtime != nullptr && runtime->max_threads() != before_) runtime->set_num_threads(before_);
}

}  // namespace cosmati::cpu
