// Measured ceilings of a GPU.
#include "src/backend/cuda/peak.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"

namespace cosmati::cuda {
namespace {

struct Operation {
  char const* name;
  char const* type;
  char const* instruction;  // of PTX: sum = sum * factor + addend
  char const* constraint;
  double operations;      // multiplications and additions of one instruction and lane
  double factor, addend;  // as the kernel gets them: bits, where a register holds several numbers
};

Operation operation_of(Peak peak) {
  switch (peak) {
    case Peak::fma_f32: return {"f32 fma", "float", "fma.rn.f32", "f", 2, 0.5, 0.25};
    case Peak::fma_f64: return {"f64 fma", "double", "fma.rn.f64", "d", 2, 0.5, 0.25};
    case Peak::half2: return {"f16 half2", "unsigned", "fma.rn.f16x2", "r", 4, 0x38003800, 0x34003400};
    case Peak::dp4a: break;
  }
  return {"s8 dp4a", "int", "dp4a.s32.s32", "r", 8, 0x13579bdf, 0x02468ace};
}

Function load(Gpu const& gpu, Peak peak) {
  jit::Cubin const cubin = jit::kernel_cache().get(peak_source(peak, architecture_of(gpu)));
  return Module(gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
}

}  // namespace

char const* name_of(Peak peak) { return operation_of(peak).name; }

jit::Source peak_source(Peak peak, std::string const& architecture) {
  Operation const operation = operation_of(peak);
  jit::Source source;
  // Factor and addend come at run time, so that nothing can be computed before.
  source.text = fmt::format(
      R"(namespace cosmati {{
struct PeakParameters {{
  long long steps;
  double factor, addend;
  void* result;
}};
template <int chains, int rounds>
__global__ void __launch_bounds__({threads}) peak_kernel(PeakParameters const parameters) {{
  using Number = {type};
  Number const factor = static_cast<Number>(parameters.factor), addend = static_cast<Number>(parameters.addend);
  Number sums[chains];
  for (int i = 0; i < chains; ++i) sums[i] = static_cast<Number>(threadIdx.x + i);
  for (long long step = 0; step < parameters.steps; ++step) {{
#pragma unroll
    for (int round = 0; round < rounds; ++round)
#pragma unroll
      for (int i = 0; i < chains; ++i)
        asm("{instruction} %0, %0, %1, %2;" : "+{constraint}"(sums[i]) : "{constraint}"(factor), "{constraint}"(addend));
  }}
  Number total = 0;
  for (int i = 0; i < chains; ++i) total += sums[i];
  if (total == static_cast<Number>(0x7eadbeef)) *static_cast<Number*>(parameters.result) = total;
}}
}}
)",
      fmt::arg("threads", peak_threads), fmt::arg("type", operation.type),
      fmt::arg("instruction", operation.instruction), fmt::arg("constraint", operation.constraint));
  source.name_expression = fmt::format("cosmati::peak_kernel<{}, {}>", peak_chains, peak_rounds);
  source.architecture = architecture;
  source.label = operation.name;
  return source;
}

PeakKernel::PeakKernel(Gpu const& gpu, Peak peak)
    : ordinal_(gpu.ordinal),
      peak_(peak),
      blocks_(static_cast<unsigned>(gpu.multiprocessors * gpu.threads_per_multiprocessor / peak_threads)),
      function_(load(gpu, peak)),
      result_(gpu.ordinal, sizeof(double)),
      start_(gpu.ordinal),
      end_(gpu.ordinal) {}

double PeakKernel::seconds(long long steps) {
  Operation const operation = operation_of(peak_);
  PeakParameters const parameters{steps, operation.factor, operation.addend, result_.data()};
  start_.record(nullptr);
  function_.launch({blocks_, 1, 1}, peak_threads, 0, parameters, nullptr);
  end_.record(nullptr);
  end_.wait();
  return end_.seconds_since(start_);
}

double PeakKernel::operations(long long steps) const {
  return operation_of(peak_).operations * peak_chains * peak_rounds * static_cast<double>(steps) *
         peak_threads * blocks_;
}

double measured_peak(Gpu const& gpu, Peak peak) {
  constexpr long long steps = 1000;
  constexpr int warm_runs = 10, runs = 20;
  PeakKernel kernel(gpu, peak);
  for (int i = 0; i < warm_runs; ++i) (void)kernel.seconds(steps);
  double least = kernel.seconds(steps);
  for (int i = 1; i < runs; ++i) least = std::min(least, kernel.seconds(steps));
  return kernel.operations(steps) / least;
}

double measured_copy_rate(Gpu const& gpu) {
  constexpr int runs = 10;
  long long const wanted = std::max(8 * gpu.l2_bytes, 1LL << 30);
  auto const bytes = static_cast<std::size_t>(std::clamp<long long>(wanted, 1 << 20, gpu.memory_bytes / 8));
  DeviceBuffer const from(gpu.ordinal, bytes), to(gpu.ordinal, bytes);
  fill(gpu.ordinal, from.data(), 1, bytes, nullptr);
  Event start(gpu.ordinal), end(gpu.ordinal);
  double least = 0;
  for (int i = 0; i < runs; ++i) {
    start.record(nullptr);
    copy_on_device(gpu.ordinal, to.data(), from.data(), bytes, nullptr);
    end.record(nullptr);
    end.wait();
    double const seconds = end.seconds_since(start);
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return 2.0 * static_cast<double>(bytes) / least;
}

}  // namespace cosmati::cuda
