// The measured arithmetic peak.
#include "cli/peak.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "src/backend/cpu/vector_clones.h"

namespace cosmati::cli {
namespace {

constexpr int chains = 8;  // enough to hide the latency of a multiply-add on two units

using FloatVector = float __attribute__((vector_size(64)));
using DoubleVector = double __attribute__((vector_size(64)));

template <class Vector, class Number>
COSMATI_ALWAYS_INLINE Number multiply_add(long long steps, Number factor) {
  Vector sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = Vector{} + static_cast<Number>(i);
  Vector const scale = Vector{} + factor;
  for (long long step = 0; step < steps; ++step)
    for (int i = 0; i < chains; ++i) sums[i] = sums[i] * scale + scale;
  Vector total{};
  for (int i = 0; i < chains; ++i) total += sums[i];
  return total[0];
}

COSMATI_CLONES float multiply_add_f32(long long steps, float factor) {
  return multiply_add<FloatVector>(steps, factor);
}
COSMATI_CLONES double multiply_add_f64(long long steps, double factor) {
  return multiply_add<DoubleVector>(steps, factor);
}

// Operations a second of one thread: the best of many short calls, which other programs interrupt less often.
double run_thread(bool in_double) {
  using Clock = std::chrono::steady_clock;
  constexpr long long steps = 100000;
  double volatile kept = 0;
  auto const begin = Clock::now();
  std::chrono::duration<double> least{1e9};
  for (auto start = begin; start - begin < std::chrono::milliseconds(200);) {
    kept = in_double ? multiply_add_f64(steps, 0.5) : static_cast<double>(multiply_add_f32(steps, 0.5f));
    auto const end = Clock::now();
    least = std::min<std::chrono::duration<double>>(least, end - start);
    start = end;
  }
  (void)kept;
  double const lanes = in_double ? 8 : 16;
  return 2.0 * lanes * chains * static_cast<double>(steps) / least.count();
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
