// Choice of main loop, policy and split for the product of a convolution.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"

namespace cosmati::plan {

// The part of the recipe that does not depend on the policy.
GemmRecipe product_recipe(ConvolutionForm const& form);

// Returns the product of all `forms`, which one kernel computes; `base` is the recipe without its product.
Offer<ConvolutionProblem> best_product(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options, std::vector<ConvolutionForm> const& forms,
                                       ConvolutionRecipe const& base);

}  // namespace cosmati::plan
