// Uses the runtime's own entry points instead of #pragma omp, so that every compiler shares the one libgomp.
#include "src/backend/cpu/parallel.h"

#include <exception>
#include <mutex>

extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace cosmati::cpu {
namespace {

struct Team {
  int parts;
  void (*body)(void*, int, int);
  void* context;
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
  for (int part = omp_get_thread_num(); part < team.parts; part += omp_get_num_threads()) team.run(part);
}

}  // namespace

void run_parts(int parts, void (*body)(void*, int, int), void* context) {
  Team team{parts, body, context};
  GOMP_parallel(run_member, &team, static_cast<unsigned>(parts), 0);
  if (team.failure) std::rethrow_exception(team.failure);
}

ThreadCount::ThreadCount(int threads) : before_(omp_get_max_threads()) {
  if (threads != before_) omp_set_num_threads(threads);
}
ThreadCount::~ThreadCount() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

}  // namespace cosmati::cpu
