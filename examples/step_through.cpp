// A product to step through in a debugger (docs/step-through.md): one block of the emulator on one host
// thread, and matrices that show where each number comes from.
#include "cosmati/gemm/launch.h"
#include "cosmati/gemm/simple.h"
#include "examples/support.h"

int main() {
  int const m = 60, n = 52, k = 20;
  example::Memory<float> a(m * k), b(k * n), d(m * n);
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l) a[i * k + l] = static_cast<float>(100 * i + l);  // a(5, 3) is 503
  for (int l = 0; l < k; ++l)
    for (int j = 0; j < n; ++j) b[l * n + j] = j % k == l ? 1.0f : 0.0f;  // so d(i, j) is a(i, j % k)

  using Gemm = cosmati::SimpleGemm<float, cosmati::all_row_major, cosmati::PolicyName::small>;
  Gemm::Params const params =
      Gemm::params({.m = m, .n = n, .k = k, .a = {a.data(), k}, .b = {b.data(), n}, .d = {d.data(), n}});
  int const batch = 1, host_threads = 1;
  example::check(cosmati::launch_gemm<Gemm>(params, batch, host_threads));

  return example::verdict(
      m, n, [&](int i, int j) { return d[i * n + j]; }, [&](int i, int j) { return a[i * k + j % k]; });
}
