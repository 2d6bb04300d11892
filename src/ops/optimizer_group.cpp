// Validation of optimizer steps for groups of tensors.
#include "cosmati/ops/optimizer_group.h"

#include <fmt/format.h>

#include "src/ops/check.h"

namespace cosmati {

void validate(OptimizerGroupProblem const& problem) {
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) try {
      validate(problem.tensors[i]);
      if (problem.tensors[i].numbers.present() || problem.tensors[i].scaling.present())
        refuse("optimizer group",
               "the numbers of a step are shared by all tensors and must be in host memory");
    } catch (Error const& error) {
      throw Error(error.code(), fmt::format("tensor {} of {}: {}", i, problem.tensors.size(), error.what()));
    }
}

}  // namespace cosmati
