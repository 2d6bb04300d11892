// Helpers that let each example run on a GPU if nvcc compiles it, and in the emulator if any other compiler
// does: memory visible to host and device, launches, and a verdict.
#pragma once
#include <cstdio>
#include <cstdlib>
#if !defined(__CUDACC__)
#include <vector>

#include "cosmati/arch/emulator.h"
#endif

namespace example {

inline constexpr int skipped = 77;  // the exit status that CTest treats as skipped

template <class Status>
void check(Status status) {
  if (static_cast<int>(status) == 0) return;
  std::printf("FAILED: status %d\n", static_cast<int>(status));
  std::exit(1);
}

#if defined(__CUDACC__)

inline bool no_gpu() {
  int count = 0;
  bool const none = cudaGetDeviceCount(&count) != cudaSuccess || count == 0;
  if (none) std::printf("skipped: no GPU\n");
  return none;
}

// An array of `count` elements visible to host and device.
template <class Element>
class Memory {
 public:
  explicit Memory(long long count) {
    check(cudaMallocManaged(&data_, static_cast<std::size_t>(count) * sizeof(Element)));
  }
  ~Memory() { cudaFree(data_); }
  Memory(Memory const&) = delete;
  Memory& operator=(Memory const&) = delete;
  Element* data() { return data_; }
  Element& operator[](long long i) { return data_[i]; }

 private:
  Element* data_ = nullptr;
};

inline void wait() { check(cudaDeviceSynchronize()); }

template <auto kernel, class Params>
void launch(int blocks, int threads, int shared_bytes, Params const& params) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  kernel<<<blocks, threads, shared_bytes>>>(params);
  check(cudaGetLastError());
}

#else

inline bool no_gpu() { return false; }

template <class Element>
class Memory {
 public:
  explicit Memory(long long count) : elements_(static_cast<std::size_t>(count) + 64) {}
  Element* data() {  // the alignment of cudaMalloc
    auto const address = reinterpret_cast<std::size_t>(elements_.data());
    return elements_.data() + (64 - address % 64) % 64 / sizeof(Element);
  }
  Element& operator[](long long i) { return data()[i]; }

 private:
  std::vector<Element> elements_;
};

inline void wait() {}

template <auto kernel, class Params>
void launch(int blocks, int threads, int shared_bytes, Params const& params) {
  cosmati::emulator::launch_kernel<kernel>({blocks, 1, 1}, threads, static_cast<unsigned>(shared_bytes),
                                           params);
}

#endif

// Small integers, so that sums are exact in any order.
template <class Element>
void fill(Memory<Element>& memory, long long count, int seed) {
  unsigned state = static_cast<unsigned>(seed);
  for (long long i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    memory[i] = static_cast<Element>(static_cast<int>(state >> 28) % 5 - 2);
  }
}

// Compares actual(m, n) with expected(m, n) for all m, n, prints the outcome, and returns main's result.
template <class Actual, class Expected>
int verdict(int rows, int columns, Actual const& actual, Expected const& expected) {
  int wrong = 0;
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < columns; ++n)
      if (!(actual(m, n) == expected(m, n)) && ++wrong <= 3)
        std::printf("WRONG at (%d, %d): %g, not %g\n", m, n, static_cast<double>(actual(m, n)),
                    static_cast<double>(expected(m, n)));
  std::printf(wrong == 0 ? "passed: %d of %d elements\n" : "FAILED: only %d of %d elements are right\n",
              rows * columns - wrong, rows * columns);
  return wrong == 0 ? 0 : 1;
}

}  // namespace example
