// Many products in one call: matrices at a constant stride, one matrix shared by all, and matrices at any
// addresses, given by pointers.
#include <cosmati/ops/gemm.h>
#include <cosmati/ops/memory.h>

#include <cstdio>
#include <vector>

namespace {

using namespace cosmati;
constexpr Index batch = 6, m = 20, n = 12, k = 16;

Prepared<GemmProblem> ready(GemmProblem const& problem) {
  return prepare(make_plan(problem, this_device(Backend::cpu)));
}

// Counts the elements of matrix i of d that differ from a[i] * b.
int wrong(float const* a, float const* b, float const* d) {
  int count = 0;
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      float sum = 0;
      for (Index l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      count += d[i * n + j] != sum;
    }
  return count;
}

}  // namespace

int main() {
  std::vector<float> a(batch * m * k), b(k * n), d(batch * m * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 11) - 5;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 3);

  // A batch stride of 0: every product reads the same b.
  GemmProblem problem;
  problem.a = describe(DataType::f32, Shape(batch, m, k));
  problem.b = describe(DataType::f32, Layout{{batch, k, n}, {0, n, 1}});
  problem.d = describe(DataType::f32, Shape(batch, m, n));
  auto const strided = ready(problem);
  DeviceMemory const workspace(strided.plan().device, strided.workspace_bytes());
  strided.run({.a = a.data(), .b = b.data(), .d = d.data()}, workspace.data());
  int errors = 0;
  for (Index i = 0; i < batch; ++i) errors += wrong(a.data() + i * m * k, b.data(), d.data() + i * m * n);

  // Arrays of pointers, one per matrix: here the batch in reverse order.
  problem.by_pointers = true;
  auto const scattered = ready(problem);
  std::vector<void const*> of_a, of_b;
  std::vector<void*> of_d;
  for (Index i = batch; i-- > 0;) {
    of_a.push_back(a.data() + i * m * k);
    of_b.push_back(b.data());
    of_d.push_back(d.data() + i * m * n);
  }
  d.assign(d.size(), 0);
  DeviceMemory const memory(scattered.plan().device, scattered.workspace_bytes());
  scattered.run({.a = of_a.data(), .b = of_b.data(), .d = of_d.data()}, memory.data());
  for (Index i = 0; i < batch; ++i) errors += wrong(a.data() + i * m * k, b.data(), d.data() + i * m * n);

  if (errors != 0) std::printf("%d elements are wrong\n", errors);
  if (errors == 0) std::printf("batches: right\n");
  return errors != 0;
}
