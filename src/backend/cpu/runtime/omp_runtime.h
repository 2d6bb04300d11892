// GCC's OpenMP runtime by its own entry points instead of #pragma omp, so that the code of every compiler and
// oneDNN share one pool of threads.
#pragma once

namespace cosmati::cpu {

struct OmpRuntime {
  void (*parallel)(void (*function)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread_num)() = nullptr;
  int (*num_threads)() = nullptr;
  int (*max_threads)() = nullptr;
  int (*thread_limit)() = nullptr;
  int (*in_parallel)() = nullptr;
  void (*set_num_threads)(int threads) = nullptr;
  int (*pause_all)(int kind) = nullptr;  // null before GCC 9
};

// Opens libgomp.so.1 at the first call; null where there is none. It must be the first to open it: oneDNN
// links it, and it reads its settings when it is loaded.
OmpRuntime const* omp_runtime();

}  // namespace cosmati::cpu
