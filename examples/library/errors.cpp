// Error handling: every failure is a cosmati::Error with a code for the program and a sentence for people.
#include <cosmati/epilogue/parse.h>
#include <cosmati/ops/gemm.h>

#include <cstdio>
#include <vector>

namespace {

using namespace cosmati;

GemmProblem product(Index m, Index n, Index k) {
  GemmProblem problem;
  problem.a = describe(DataType::f32, Shape(1, m, k));
  problem.b = describe(DataType::f32, Shape(1, k, n));
  problem.d = describe(DataType::f32, Shape(1, m, n));
  return problem;
}

// Prints the error that `body` throws; returns 1 if it throws none, or one with another code.
template <class Body>
int expect(ErrorCode code, Body const& body) {
  try {
    body();
  } catch (Error const& error) {
    std::printf("%s\n\n", error.what());
    return error.code() == code ? 0 : 1;
  }
  std::printf("nothing was thrown\n");
  return 1;
}

}  // namespace

int main() {
  Device const device = this_device(Backend::cpu);
  int surprises = 0;

  // Mismatched shapes: the message names the tensor, its shape, and the shape required.
  surprises += expect(ErrorCode::bad_request, [&] {
    GemmProblem problem = product(4, 5, 3);
    problem.b = describe(DataType::f32, Shape(1, 7, 5));
    make_plan(problem, device);
  });
  // An invalid epilogue: three lines, with a caret under the column.
  surprises += expect(ErrorCode::bad_request, [] { epilogue::parse("relu(acc + bias[n)"); });
  // An unknown kernel.
  surprises += expect(ErrorCode::bad_request,
                      [&] { make_plan(product(4, 5, 3), device, {.kernel = "onednn_mat_mul"}); });
  // A device that is not available.
  surprises += expect(ErrorCode::unavailable, [] { this_device(Backend::cuda, 0, 1000); });
  // A missing argument: nothing is written.
  surprises += expect(ErrorCode::bad_request, [&] {
    std::vector<float> a(12), d(20);
    auto const ready = prepare(make_plan(product(4, 5, 3), device, {.max_workspace = 0}));
    ready.run({.a = a.data(), .d = d.data()});
  });
  return surprises;
}
