// How a GPU kernel, composed or emulated, computes a convolution: what a plan holds beyond its name.
#pragma once
#include "cosmati/ops/gemm_recipe.h"

namespace cosmati {

// The kernels of a convolution, each in a header of include/cosmati/conv/.
enum class ConvolutionAlgorithm : unsigned char { implicit_gemm, direct };

struct ConvolutionRecipe {
  ConvolutionAlgorithm algorithm = ConvolutionAlgorithm::implicit_gemm;
  // Policy, splits, the accesses of a and b, the result's width. Of algorithms without a main loop only the
  // types matter.
  GemmRecipe product;
  // A step of the main loop has one tap and block_k channels (cosmati/conv/window_source.h).
  bool stepwise = false;
  int launches = 1;  // of a data gradient with strides: one for each place between them

  bool is_direct() const { return algorithm == ConvolutionAlgorithm::direct; }
  friend bool operator==(ConvolutionRecipe const&, ConvolutionRecipe const&) = default;
};

}  // namespace cosmati
