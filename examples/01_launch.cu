// A complete matrix product in a user's program: D = A * B, all row-major, in f32.
#include "cosmati/gemm/launch.h"
#include "cosmati/gemm/simple.h"
#include "examples/support.h"

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 300, n = 200, k = 100;
  example::Memory<float> a(m * k), b(k * n), d(m * n);
  example::fill(a, m * k, 1);
  example::fill(b, k * n, 2);

  // The product. NN, NT, TN and TT instead of all_row_major select the four column-major layouts of BLAS.
  using Gemm = cosmati::SimpleGemm<float, cosmati::all_row_major, cosmati::PolicyName::medium>;
  Gemm::Params const params =
      Gemm::params({.m = m, .n = n, .k = k, .a = {a.data(), k}, .b = {b.data(), n}, .d = {d.data(), n}});
  example::check(cosmati::launch_gemm<Gemm>(params));
  example::wait();

  return example::verdict(
      m, n, [&](int i, int j) { return d[i * n + j]; },
      [&](int i, int j) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
        return sum;
      });
}
