// An epilogue in C++: any callable with its own state, fused into the product. D = relu(A * B + bias), a
// fully connected layer, column-major as in BLAS.
#include "cosmati/gemm/launch.h"
#include "cosmati/gemm/simple.h"
#include "examples/support.h"

struct BiasRelu {
  float const* bias;  // (m), in device memory
  COSMATI_DEVICE float operator()(float sum, cosmati::Index m, cosmati::Index /*n*/) const {
    float const value = sum + bias[m];
    return value > 0 ? value : 0;
  }
};

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 140, n = 91, k = 60;
  example::Memory<float> a(m * k), b(k * n), d(m * n), bias(m);
  example::fill(a, m * k, 1);
  example::fill(b, k * n, 2);
  example::fill(bias, m, 3);

  // TN: A is stored transposed, contiguous along k, as the weights of a layer often are.
  using Layer = cosmati::SimpleGemm<float, cosmati::TN, cosmati::PolicyName::medium, BiasRelu>;
  example::check(cosmati::launch_gemm<Layer>(Layer::params({.m = m,
                                                            .n = n,
                                                            .k = k,
                                                            .a = {a.data(), k},
                                                            .b = {b.data(), k},
                                                            .d = {d.data(), m},
                                                            .epilogue = {bias.data()}})));
  example::wait();

  return example::verdict(
      m, n, [&](int i, int j) { return d[i + j * m]; },
      [&](int i, int j) {
        float sum = bias[i];
        for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l + j * k];
        return sum > 0 ? sum : 0;
      });
}
