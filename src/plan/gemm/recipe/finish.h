// The last step of a recipe: from a policy and a partition to blocks, workspace and predicted time.
#pragma once
#include <string>

#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/group.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"

namespace cosmati::plan {

// `volume` is that of the undivided product.
void finalize_recipe(GemmRecipe& recipe, KPartition const& k_partition, CanonicalGemm const& form,
                     Device const& device, Volume const& volume);
// The same for the members of a group.
void finalize_recipe(GemmRecipe& recipe, GroupForm const& group, Gpu const& gpu);

// Prepares the recipe for results that are parts; returns the reason why its kernel cannot store them, empty
// if it can.
std::string store_parts(GemmRecipe& recipe, CanonicalGemm const& form, Device const& device,
                        bool has_schedule);

}  // namespace cosmati::plan
