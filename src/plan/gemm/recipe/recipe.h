// Recipes of products before a search among policies, and the requirements of complete ones.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

// The problem as the main loop sees it; `side`: CanonicalGemm::swapped, if it is prescribed.
CanonicalGemm form_for(MainLoop main_loop, GemmProblem const& problem, std::optional<bool> side = {});

// The part of the recipe that does not depend on the policy.
GemmRecipe recipe_for(MainLoop main_loop, CanonicalGemm const& form);

std::size_t workspace_of(GemmRecipe const& recipe);

// The reason why the policy does not support the problem; empty if it does.
std::string form_violation(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu);

// The reason why a measured choice is no longer valid; empty if it is valid.
std::string measured_violation(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu);

}  // namespace cosmati::plan
