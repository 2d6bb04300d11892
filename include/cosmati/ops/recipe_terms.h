// The terms that the text of a recipe uses, which `cosmati explain` defines below its table.
#pragma once
#include <vector>

#include "cosmati/core/cxx20.h"

namespace cosmati {

struct GemmRecipe;
struct ConvolutionRecipe;

enum class RecipeTerm : unsigned char {
  tile,
  cluster,
  cluster_reduction,
  ping_pong,
  raster,
  full_tiles,
  swapped,
  repacked,
  transposed_first,
  winograd_tile,
  access,
  splits
};

// Recipes of other operations have no such terms.
template <class Recipe>
std::vector<RecipeTerm> terms_of(Recipe const&) {
  return {};
}
std::vector<RecipeTerm> terms_of(GemmRecipe const& recipe);
std::vector<RecipeTerm> terms_of(ConvolutionRecipe const& recipe);

}  // namespace cosmati
