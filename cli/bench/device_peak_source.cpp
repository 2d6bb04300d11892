// Source text of the kernels that measure peaks.
#include "cli/bench/device_peak_source.h"

#include <fmt/format.h>

#include "src/ops/architecture.h"

namespace cosmati::cuda {
namespace {

// PTX of one thread's multiply-add: sum = sum * factor + addend.
struct Operation {
  char const* name;
  char const* type;
  char const* instruction;
  char const* constraint;
  double operations;  // per instruction and lane
  double factor, addend;
};

Operation operation_of(Peak peak) {
  switch (peak) {
    case Peak::fma_f32: return {"f32 fma", "float", "fma.rn.f32", "f", 2, 0.5, 0.25};
    case Peak::fma_f64: return {"f64 fma", "double", "fma.rn.f64", "d", 2, 0.5, 0.25};
    case Peak::half2: return {"f16 half2", "unsigned", "fma.rn.f16x2", "r", 4, 0x38003800, 0x34003400};
    default: return {"s8 dp4a", "int", "dp4a.s32.s32", "r", 8, 0x13579bdf, 0x02468ace};
  }
}

// Products on tensor cores. Factors are random numbers of both signs with magnitudes from 1/8 to 1 (for s8
// all values): zeros would draw less power and permit a higher clock than real products do. A word of factors
// is (noise & mask) | base.
struct Product {
  char const* name;
  char const* element;
  char const* sum;
  int bytes;  // per element
  unsigned mask, base;
};

Product product_of(Peak peak) {
  switch (peak) {
    case Peak::mma_f16: return {"f16 mma", "f16", "float", 2, 0x8fff8fff, 0x30003000};
    case Peak::mma_bf16: return {"bf16 mma", "bf16", "float", 2, 0x81ff81ff, 0x3e003e00};
    case Peak::mma_tf32: return {"tf32 mma", "tf32", "float", 4, 0x81ffffff, 0x3e000000};
    case Peak::mma_e4m3: return {"e4m3 mma", "e4m3", "float", 1, 0x9f9f9f9f, 0x20202020};
    case Peak::mma_s8: return {"s8 mma", "s8", "int", 1, 0xffffffff, 0};
    case Peak::wgmma_f16: return {"f16 wgmma", "f16", "float", 2, 0x8fff8fff, 0x30003000};
    case Peak::wgmma_bf16: return {"bf16 wgmma", "bf16", "float", 2, 0x81ff81ff, 0x3e003e00};
    case Peak::wgmma_tf32: return {"tf32 wgmma", "tf32", "float", 4, 0x81ffffff, 0x3e000000};
    case Peak::wgmma_e4m3: return {"e4m3 wgmma", "e4m3", "float", 1, 0x9f9f9f9f, 0x20202020};
    case Peak::wgmma_s8: return {"s8 wgmma", "s8", "int", 1, 0xffffffff, 0};
    default:
      return {"f64 mma", "double", "double", 8, 0x803fffff, 0x3fc00000};  // mask and base of the upper words
  }
}

bool is_wgmma(Peak peak) { return peak >= Peak::wgmma_f16; }

// Factor and addend are kernel arguments, so that the compiler cannot fold the loop.
constexpr char thread_text[] = R"(
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
)";

constexpr char noise_text[] = R"(
COSMATI_DEVICE unsigned noise(unsigned place) {
  place = (place + 0x9e3779b9u) * 0x85ebca6bu;
  place = (place ^ place >> 13) * 0xc2b2ae35u;
  return place ^ place >> 16;
}
COSMATI_DEVICE unsigned factors(unsigned place) { return (noise(place) & mask) | base; }
)";

// The independent chains are the products of two blocks of 16 rows and four of 8 columns, as in a GEMM
// kernel, so that adjacent chains share a factor.
constexpr char mma_text[] = R"(
template <class Factor>
struct Factors {
  unsigned a[2][4], b[4][2];
  COSMATI_DEVICE Factors() {
    for (int i = 0; i < 8; ++i) a[i / 4][i % 4] = factors(threadIdx.x * 16 + i);
    for (int i = 0; i < 8; ++i) b[i / 2][i % 2] = factors(threadIdx.x * 16 + 8 + i);
  }
  template <class S>
  COSMATI_DEVICE void multiply(S (&sums)[4], int i, int j) const {
    arch::multiply_matrices<Factor, Factor>(sums, a[i], b[j]);
  }
};
template <>
struct Factors<double> {
  double a[2][2], b[4];
  COSMATI_DEVICE static double factor(unsigned place) {
    return __hiloint2double(static_cast<int>(factors(place)), static_cast<int>(noise(~place)));
  }
  COSMATI_DEVICE Factors() {
    for (int i = 0; i < 4; ++i) a[i / 2][i % 2] = factor(threadIdx.x * 16 + i);
    for (int i = 0; i < 4; ++i) b[i] = factor(threadIdx.x * 16 + 4 + i);
  }
  COSMATI_DEVICE void multiply(double (&sums)[4], int i, int j) const { arch::multiply_matrices(sums, a[i], b[j]); }
};
template <int chains, int rounds>
COSMATI_KERNEL(threads, 2) peak_kernel(PeakParameters const parameters) {
  Factors<Element> const factors;
  Sum sums[chains][4];
  for (int i = 0; i < 4 * chains; ++i) sums[i / 4][i % 4] = static_cast<Sum>(threadIdx.x + i);
#pragma unroll 1
  for (long long step = 0; step < parameters.steps; ++step) {
#pragma unroll
    for (int round = 0; round < rounds; ++round)
#pragma unroll
      for (int i = 0; i < chains; ++i) factors.multiply(sums[i], i / 4 % 2, i % 4);
  }
  Sum total = 0;
  for (int i = 0; i < 4 * chains; ++i) total += sums[i / 4][i % 4];
  if (total == static_cast<Sum>(0x7eadbeef)) *static_cast<Sum*>(parameters.result) = total;
}
)";

// Two warpgroups; each multiplies its own 64 rows by the same 256 columns, from shared memory with the
// 128-byte swizzle.
constexpr char wgmma_text[] = R"(
template <int chains, int rounds>
COSMATI_KERNEL(threads, 1) peak_kernel(PeakParameters const parameters) {
  __shared__ alignas(1024) unsigned a[2][64][32];
  __shared__ alignas(1024) unsigned b[256][32];
  for (unsigned i = threadIdx.x; i < 2 * 64 * 32; i += threads) (&a[0][0][0])[i] = factors(i);
  for (unsigned i = threadIdx.x; i < 256 * 32; i += threads) (&b[0][0])[i] = factors(4096 + i);
  arch::publish_to_async();
  __syncthreads();
  int const group = threadIdx.x / 128;
  unsigned long long const from_a = matrix_descriptor(
      arch::shared_address(&a[group]), strides_of_tile(64, false, Swizzle::bytes128), Swizzle::bytes128);
  unsigned long long const from_b = matrix_descriptor(
      arch::shared_address(&b), strides_of_tile(256, false, Swizzle::bytes128), Swizzle::bytes128);
  Sum sums[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) sums[i] = 0;
#pragma unroll 1
  for (long long step = 0; step < parameters.steps; ++step) {
    arch::warpgroup_begin();
#pragma unroll
    for (int round = 0; round < rounds; ++round)
      arch::multiply_warpgroup<Element, Element, false, false, 256>(
          sums, from_a + 2 * (round % 4), from_b + 2 * (round % 4), true);
    arch::warpgroup_commit();
    arch::warpgroup_wait<1>();
  }
  arch::warpgroup_wait<0>();
  arch::fence_registers(sums);
  Sum total = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) total += sums[i];
  if (total == static_cast<Sum>(0x7eadbeef)) *static_cast<Sum*>(parameters.result) = total;
}
)";

constexpr char head_text[] = R"(namespace cosmati {
struct PeakParameters {
  long long steps;
  double factor, addend;
  void* result;
};
)";

std::string thread_source(Peak peak) {
  Operation const operation = operation_of(peak);
  return head_text + fmt::format(thread_text, fmt::arg("threads", peak_threads),
                                 fmt::arg("type", operation.type),
                                 fmt::arg("instruction", operation.instruction),
                                 fmt::arg("constraint", operation.constraint));
}

std::string tensor_source(Peak peak) {
  Product const product = product_of(peak);
  std::string text = is_wgmma(peak) ? "#include \"cosmati/arch/barrier.h\"\n"
                                      "#include \"cosmati/arch/tensor_copy.h\"\n"
                                      "#include \"cosmati/arch/warpgroup.h\"\n"
                                      "#include \"cosmati/tile/matrix_descriptor.h\"\n"
                                    : "#include \"cosmati/arch/double_matrix.h\"\n"
                                      "#include \"cosmati/arch/matrix.h\"\n";
  text += head_text;
  text += fmt::format(
      "using Element = {};\nusing Sum = {};\nconstexpr unsigned mask = {:#x}u, base = {:#x}u;\n"
      "constexpr int threads = {};\n",
      product.element, product.sum, product.mask, product.base, peak_threads);
  return text + noise_text + (is_wgmma(peak) ? wgmma_text : mma_text);
}

}  // namespace

char const* name_of(Peak peak) {
  return is_of_tensor_cores(peak) ? product_of(peak).name : operation_of(peak).name;
}

bool is_of_tensor_cores(Peak peak) { return peak >= Peak::mma_f16; }

bool has_peak(Peak peak, Gpu const& gpu) {
  Features const& features = features_of(gpu);
  if (!is_of_tensor_cores(peak)) return true;
  if (is_wgmma(peak)) return features.wgmma;
  return peak == Peak::mma_e4m3 ? features.native_fp8_mma : features.mma;
}

PeakLoop loop_of(Peak peak) {
  if (is_wgmma(peak)) return {1, 16};
  return is_of_tensor_cores(peak) ? PeakLoop{8, 8} : PeakLoop{16, 16};
}

int blocks_of(Peak peak, int threads_per_multiprocessor) {
  if (is_wgmma(peak)) return 1;
  return is_of_tensor_cores(peak) ? 2 : threads_per_multiprocessor / peak_threads;
}

double operations_of_step(Peak peak) {
  PeakLoop const loop = loop_of(peak);
  double const instructions = loop.chains * loop.rounds;
  if (!is_of_tensor_cores(peak)) return operation_of(peak).operations * instructions * peak_threads;
  double const depth = 32.0 / product_of(peak).bytes;
  return is_wgmma(peak) ? 2 * 64 * 256 * depth * instructions * (peak_threads / 128)
                        : 2 * 16 * 8 * depth * instructions * (peak_threads / 32);
}

PeakParameters parameters_of(Peak peak, long long steps, void* result) {
  if (is_of_tensor_cores(peak)) return {steps, 0, 0, result};
  Operation const operation = operation_of(peak);
  return {steps, operation.factor, operation.addend, result};
}

jit::Source peak_source(Peak peak, std::string const& architecture) {
  PeakLoop const loop = loop_of(peak);
  jit::Source source;
  source.text = (is_of_tensor_cores(peak) ? tensor_source(peak) : thread_source(peak)) + "}\n";
  source.name_expression = fmt::format("cosmati::peak_kernel<{}, {}>", loop.chains, loop.rounds);
  source.architecture = architecture;
  source.label = name_of(peak);
  return source;
}

}  // namespace cosmati::cuda
