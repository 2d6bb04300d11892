// How a GPU kernel, composed or emulated, computes a convolution: what a plan holds beyond its name.
#pragma once
#include "cosmati/ops/gemm_recipe.h"

namespace cosmati {

struct ConvolutionRecipe {
  // Policy, splits, the accesses of a and b, the result's width. Without a policy's main loop in use, that of
  // the direct convolution, only the types matter.
  GemmRecipe product;
  bool direct = false;
  // A step of the main loop has one tap and block_k channels (cosmati/conv/window_source.h).
  bool stepwise = false;
  int launches = 1;  // of a data gradient with strides: one for each place between them
  friend bool operator==(ConvolutionRecipe const&, ConvolutionRecipe const&) = default;
};

}  // namespace cosmati
