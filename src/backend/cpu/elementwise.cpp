// Expressions over elements of any types, strides and broadcasts, by Pointwise with the tensor x as `acc`.
#include "src/backend/cpu/own.h"

#include <memory>

#include "src/backend/cpu/pointwise.h"
#include "src/backend/cpu/pointwise_kernel.h"
#include "src/plan/make_plan.h"

namespace cosmati::cpu {
namespace {

bool computes_in_double(ElementwiseProblem const& problem) {
  bool in_double = needs_double(problem.x, problem.y);
  for (auto const* list : {&problem.epilogue.operands, &problem.epilogue.stores})
    for (TensorDescription const& tensor : *list) in_double = in_double || needs_double(tensor, {});
  return in_double;
}

class ElementwiseKernel final : public HostKernel<ElementwiseProblem> {
 public:
  ElementwiseKernel(ElementwiseProblem const& problem, int threads)
      : pointwise_(epilogue_pointwise(problem.epilogue, elementwise_indices(problem.x.layout.rank()),
                                      problem.x, {}, problem.y, computes_in_double(problem)),
                   threads) {}
  std::size_t workspace_bytes() const { return pointwise_.workspace_bytes(); }
  void run(ElementwiseProblem::Arguments const& arguments, std::byte* workspace) const override {
    pointwise_.run(
        {arguments.x, nullptr, arguments.operands, arguments.scalars, arguments.y, arguments.stores},
        workspace);
  }

 private:
  Pointwise pointwise_;
};

}  // namespace

template <>
Candidate<ElementwiseProblem> own_candidate() {
  return {"vectorized",
          {},
          [](ElementwiseProblem const& problem, Device const& device) {
            return ElementwiseKernel(problem, device.threads).workspace_bytes();
          },
          [](Plan<ElementwiseProblem> const& plan) -> std::unique_ptr<Kernel<ElementwiseProblem>> {
            return std::make_unique<ElementwiseKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
