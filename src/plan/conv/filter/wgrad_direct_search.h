// What the plan of wgrad_direct (wgrad_direct.cpp) and the search for its recipe share.
#pragma once
#include <limits>

#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/integers.h"

namespace cosmati::plan {

inline Index threads_of(WgradDirectRecipe const& recipe) { return Index{1} << recipe.log2_threads; }
inline Index slots_of(SlidingArguments const& w, WgradDirectRecipe const& recipe) {
  return Index{recipe.filters / recipe.thread_filters} * w.inputs * w.rows.taps;
}
inline Index taps_of(SlidingArguments const& w) { return Index{w.rows.taps} * w.columns.taps; }
inline Index weights_of(SlidingArguments const& w, bool bias) {
  return Index{w.outputs} * w.inputs * taps_of(w) + (bias ? w.outputs : 0);
}
inline Index passes_of(SlidingArguments const& w, WgradDirectRecipe const& recipe) {
  return ceiling_divide(w.images, recipe.images) * ceiling_divide(w.rows.outputs, recipe.rows);
}

// The planes of both tensors in shared memory.
struct BothPlanes {
  PlaneSchedule x, dy;
  BothPlanes(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe);
};
Index shared_values(WgradDirectForm const& gradient, WgradDirectRecipe const& recipe, BothPlanes const& both);

// The recipe that is predicted to be fastest; infinitely slow if none fits into shared memory.
struct FoundRecipe {
  WgradDirectRecipe recipe;
  double seconds = std::numeric_limits<double>::infinity();
};
FoundRecipe find_wgrad_direct_recipe(WgradDirectForm const& gradient, KnownAxis const& columns,
                                     Device const& device);

}  // namespace cosmati::plan
