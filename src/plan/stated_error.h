// The expected rounding error of kernels that compute sums of products without transforms.
#pragma once

namespace cosmati {

struct ConvolutionProblem;
struct ConvolutionRecipe;
struct Device;
struct GemmProblem;
struct GemmRecipe;

namespace plan {

// Considered::expected_error of a kernel that states none itself; 0 for sums of integers and where nothing is
// known.
double stated_error(GemmProblem const& problem, Device const& device, char const* kernel,
                    GemmRecipe const& recipe);
double stated_error(ConvolutionProblem const& problem, Device const& device, char const* kernel,
                    ConvolutionRecipe const& recipe);
template <class Problem, class Recipe>
double stated_error(Problem const&, Device const&, char const*, Recipe const&) {
  return 0;
}

}  // namespace plan
}  // namespace cosmati
