// Kernels that are one expression over two inputs: acc and c.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/pointwise.h"
#include "src/plan/make_plan.h"

namespace cosmati::cpu {

// An operation as an expression, and its arguments.
template <class Problem>
struct PointwiseRecipe {
  using Arguments = typename Problem::Arguments;
  PointwiseProblem problem;
  void const* Arguments::*first = nullptr;   // acc
  void const* Arguments::*second = nullptr;  // c
  void* Arguments::*result = nullptr;
  std::vector<double> scalars;  // the constants that remain: infinities

  // Sets the expression of `text` with these names replaced by constants.
  void set_expression(char const* text, std::map<std::string, double> const& constants) {
    problem.expression = epilogue::bind_scalars(epilogue::parse(text), constants);
    for (auto const& scalar : problem.expression.scalars()) scalars.push_back(constants.at(scalar.name));
  }
};

template <class Problem, PointwiseRecipe<Problem> (*build)(Problem const&)>
class PointwiseKernel final : public HostKernel<Problem> {
 public:
  PointwiseKernel(Problem const& problem, int threads)
      : recipe_(build(problem)), pointwise_(recipe_.problem, threads) {}
  std::size_t workspace_bytes() const { return pointwise_.workspace_bytes(); }
  void run(typename Problem::Arguments const& arguments, std::byte* workspace) const override {
    pointwise_.run({arguments.*recipe_.first,
                    recipe_.second != nullptr ? arguments.*recipe_.second : nullptr,
                    {},
                    recipe_.scalars,
                    arguments.*recipe_.result,
                    {}},
                   workspace);
  }

 private:
  PointwiseRecipe<Problem> recipe_;
  Pointwise pointwise_;
};

template <class Problem, PointwiseRecipe<Problem> (*build)(Problem const&)>
Candidate<Problem> pointwise_candidate(char const* name) {
  using Own = PointwiseKernel<Problem, build>;
  return {name,
          {},
          [](Problem const& problem, Device const& device) {
            return Own(problem, device.threads).workspace_bytes();
          },
          [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            return std::make_unique<Own>(plan.problem, plan.device.threads);
          }};
}

// The arithmetic that represents the inputs exactly: double if one of them is f64 or s32.
inline bool needs_double(TensorDescription const& a, TensorDescription const& b) {
  auto const wide = [](TensorDescription const& t) {
    return t.present() && (t.type == DataType::f64 || t.type == DataType::s32);
  };
  return wide(a) || wide(b);
}

}  // namespace cosmati::cpu
