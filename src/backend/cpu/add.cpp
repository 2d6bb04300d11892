// Sums, scaled copies and layout transforms.
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/pointwise_kernel.h"

namespace cosmati::cpu {
namespace {

PointwiseRecipe<AddProblem> build_add(AddProblem const& problem) {
  using Arguments = AddProblem::Arguments;
  bool const two = problem.b.present();
  PointwiseRecipe<AddProblem> recipe;
  recipe.set_expression(two ? "alpha * acc + beta * c" : "alpha * acc",
                        {{"alpha", problem.alpha}, {"beta", problem.beta}});
  recipe.problem.accumulator = problem.a;
  recipe.first = &Arguments::a;
  recipe.problem.result = problem.y;
  recipe.result = &Arguments::y;
  if (two) {
    recipe.problem.source = problem.b;
    recipe.second = &Arguments::b;
  }
  recipe.problem.in_double = needs_double(problem.a, problem.b);
  return recipe;
}

class TransformKernel final : public HostKernel<TransformProblem> {
 public:
  TransformKernel(TransformProblem const& problem, int threads) : problem_(problem), threads_(threads) {}
  void run(TransformProblem::Arguments const& arguments, std::byte*) const override {
    convert_elements(problem_.x, arguments.x, problem_.y, arguments.y, threads_);
  }

 private:
  TransformProblem problem_;
  int threads_;
};

}  // namespace

template <>
Candidate<AddProblem> own_candidate() {
  return pointwise_candidate<AddProblem, build_add>("vectorized");
}

template <>
Candidate<TransformProblem> own_candidate() {
  return {"tiled",
          {},
          nullptr,
          [](Plan<TransformProblem> const& plan) -> std::unique_ptr<Kernel<TransformProblem>> {
            return std::make_unique<TransformKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
