// d = relu(a * b + bias[n]) on this machine's processor. README.md prints this program.
#include <cosmati/epilogue/parse.h>
#include <cosmati/ops/gemm.h>
#include <cosmati/ops/memory.h>

#include <cstdio>
#include <vector>

int main() {
  using namespace cosmati;
  Index const m = 127, n = 65, k = 333;
  std::vector<float> a(m * k, 1), b(k * n, 2), bias(n, -600), d(m * n);

  GemmProblem problem;  // what to compute: types, shapes, an epilogue; no pointers
  problem.a = describe(DataType::f32, Shape(1, m, k));  // a batch of one
  problem.b = describe(DataType::f32, Shape(1, k, n));
  problem.d = describe(DataType::f32, Shape(1, m, n));
  problem.epilogue = {epilogue::parse("relu(acc + bias[n])"), {describe(DataType::f32, Shape(n))}, {}};

  auto const plan = make_plan(problem, this_device(Backend::cpu));  // how to compute it
  std::fputs(explain(plan.considered, plan.kernel).c_str(), stdout);
  auto const product = prepare(plan);  // all slow work: compiling, loading, library set-up

  DeviceMemory const workspace(plan.device, plan.workspace_bytes);
  void const* operands[] = {bias.data()};
  product.run({.a = a.data(), .b = b.data(), .d = d.data(), .operands = operands}, workspace.data());
  std::printf("d[0] = %g\n", d[0]);  // 333 * 1 * 2 - 600 = 66
}
