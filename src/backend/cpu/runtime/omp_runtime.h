// GCC's OpenMP runtime through its entry points instead of #pragma omp, so that code of every compiler shares
// one thread pool with oneDNN.
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

// Opens libgomp.so.1 on the first call; null if it does not exist. Must be called before oneDNN is loaded,
// which links it, because it reads its settings when it is loaded.
OmpRuntime const* omp_runtime();

}  // namespace cosmati::cpu
