// Measures the arithmetic peak of the CPU.
#include "cli/bench/peak.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cli {
namespace {

using epilogue::VectorLevel;

constexpr int chains = 12;  // enough to hide the latency of a multiply-add on two units; fits 16 registers

template <int bytes, class Number>
COSMATI_ALWAYS_INLINE double multiply_add(long long steps, Number factor) {
  using Vector __attribute__((vector_size(bytes))) = Number;
  Vector sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = Vector{} + static_cast<Number>(i);
  Vector const scale = Vector{} + factor;
  for (long long step = 0; step < steps; ++step)
    for (int i = 0; i < chains; ++i) sums[i] = sums[i] * scale + scale;
  Vector total{};
  for (int i = 0; i < chains; ++i) total += sums[i];
  return static_cast<double>(total[0]);
}

// Vectors are as wide as the registers: wider ones would be spilled to memory.
template <class Number>
double multiply_add_baseline(long long steps) {
  return multiply_add<16, Number>(steps, Number(0.5));
}
template <class Number>
COSMATI_TARGET("v3")
double multiply_add_v3(long long steps) {
  return multiply_add<32, Number>(steps, Number(0.5));
}
template <class Number>
COSMATI_TARGET("v4")
double multiply_add_v4(long long steps) {
  return multiply_add<64, Number>(steps, Number(0.5));
}

struct Chains {
  double (*run)(long long steps);
  int bytes;  // per vector
};

template <class Number>
Chains chains_of(VectorLevel level) {
  if (cpu::has_clones && level == VectorLevel::v4) return {multiply_add_v4<Number>, 64};
  if (cpu::has_clones && level == VectorLevel::v3) return {multiply_add_v3<Number>, 32};
  return {multiply_add_baseline<Number>, 16};
}

// Operations per second of one thread: the best of many short calls, which other programs are less likely to
// interrupt.
double run_thread(bool in_double) {
  using Clock = std::chrono::steady_clock;
  constexpr long long steps = 100000;
  VectorLevel const level = epilogue::best_vector_level();
  Chains const loop = in_double ? chains_of<double>(level) : chains_of<float>(level);
  double volatile kept = 0;
  auto const begin = Clock::now();
  std::chrono::duration<double> minimum{1e9};
  for (auto start = begin; start - begin < std::chrono::milliseconds(200);) {
    kept = loop.run(steps);
    auto const end = Clock::now();
    minimum = std::min<std::chrono::duration<double>>(minimum, end - start);
    start = end;
  }
  (void)kept;
  double const lanes = loop.bytes / (in_double ? 8.0 : 4.0);
  return 2.0 * lanes * chains * static_cast<double>(steps) / minimum.count();
}

}  // namespace

double measured_peak(DataType type, int threads) {
  bool const in_double = type == DataType::f64;
  if (!in_double && type != DataType::f32 && type != DataType::tf32) return 0;
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::thread> workers;
  for (double& rate : rates) workers.emplace_back([&rate, in_double] { rate = run_thread(in_double); });
  for (std::thread& worker : workers) worker.join();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace cosmati::cli
