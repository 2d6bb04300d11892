// Matrices that are parts of larger ones, in any order: a is column-major, b is the transpose of a row-major
// matrix, and d is a block inside a larger matrix whose other elements are unchanged.
#include <cosmati/ops/gemm.h>
#include <cosmati/ops/memory.h>

#include <cstdio>
#include <vector>

int main() {
  using namespace cosmati;
  Index const m = 40, n = 24, k = 56;
  Index const lda = 64, ldb = 60, ldd = 100;  // elements between columns of a, and between rows of b and d
  std::vector<float> a(lda * k), b(n * ldb), d(m * ldd, -1);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;

  // Element (batch, i, j) lies at batch * stride[0] + i * stride[1] + j * stride[2].
  GemmProblem problem;
  problem.a = describe(DataType::f32, Layout{{1, m, k}, {0, 1, lda}});
  problem.b = describe(DataType::f32, Layout{{1, k, n}, {0, 1, ldb}});
  problem.d = describe(DataType::f32, Layout{{1, m, n}, {0, ldd, 1}});
  // d begins 17 elements into its matrix, which is a multiple of 4 bytes but not of the 16 bytes that a
  // description promises by default. GPU kernels load and store according to this promise.
  Index const first = 17;
  problem.d.alignment = sizeof(float);

  auto const product = prepare(make_plan(problem, this_device(Backend::cpu)));
  DeviceMemory const workspace(product.plan().device, product.workspace_bytes());
  product.run({.a = a.data(), .b = b.data(), .d = d.data() + first}, workspace.data());

  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < ldd; ++j) {
      float const found = d.data()[i * ldd + j];
      float expected = -1;
      if (j >= first && j < first + n) {
        expected = 0;
        for (Index l = 0; l < k; ++l) expected += a.data()[i + l * lda] * b.data()[l + (j - first) * ldb];
      }
      if (found != expected) {
        std::printf("d(%lld, %lld) is %g, not %g\n", i, j, found, expected);
        return 1;
      }
    }
  std::printf("strides: right\n");
}
