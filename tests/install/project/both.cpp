// Uses the C++ interface of an installed Cosmati, and the C interface from C++.
#include <cosmati.h>

#include <cosmati/epilogue/parse.h>
#include <cosmati/ops/find.h>
#include <cosmati/ops/gemm.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

bool multiply() {
  using namespace cosmati;
  constexpr Index n = 16;
  GemmProblem problem;
  problem.a = problem.b = problem.d = describe(DataType::f32, Shape(1, n, n));
  problem.epilogue.expression = epilogue::parse("acc - 1");
  auto const found = find(problem, this_device(Backend::cpu, 1), {.seconds = 0.001});
  auto const& product = found.front().prepared;
  std::vector<float> a(n * n, 2), d(n * n, 0);
  std::vector<std::byte> memory(product.workspace_bytes() + 64);
  auto* const workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  product.run({.a = a.data(), .b = a.data(), .d = d.data()}, workspace);
  std::printf("%s: %g\n", product.plan().kernel.c_str(), static_cast<double>(d[5]));
  return d[5] == 4 * n - 1;
}

bool refuse() {
  cosmati_handle_t handle = nullptr;
  return cosmati_create("abacus", nullptr, &handle) == COSMATI_BAD_REQUEST &&
         std::string(cosmati_last_error()).find("abacus") != std::string::npos;
}

}  // namespace

int main() { return cosmati_version() == COSMATI_VERSION_NUMBER && refuse() && multiply() ? 0 : 1; }
