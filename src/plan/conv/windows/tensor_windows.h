// implicit_gemm through the warp_specialized main loop: a convolution whose image TMA unrolls (im2col mode),
// and whose result is a matrix in memory.
#pragma once
#include <string>
#include <vector>

#include "cosmati/conv/tensor_windows.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/conv/places.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

// What the host encodes in tensor maps. Dimensions of the image: channel, column, row, image; of the filter:
// neighbor, tap's column, tap's row, line. Strides in elements.
struct ImageMap {
  Index extent[4] = {}, stride[4] = {};
  int lower[2] = {}, upper[2] = {}, step[2] = {1, 1};  // corners of windows: column, row
};
struct FilterMap {
  Index extent[4] = {}, stride[4] = {};
  Index base = 0;
};

// One product: d(m, n) with the depth padded to whole steps of a tap; of a filter's gradient pixels are the
// depth, taps and channels n.
struct WindowProduct {
  ConvolutionForm form;
  // a and b hold types, and strides for the prediction; d, the operands and the stores are matrices, unless
  // WindowProducts says that they go by digits: then the form has them.
  CanonicalGemm product;
  ImageMap image;
  FilterMap filter;                // of a filter's gradient nothing: dy is the matrix product.a
  ImageArguments image_arguments;  // but for the maps
  FilterArguments filter_arguments;
};

// All products of a convolution: of a data gradient with strides one for each place between them, which may
// share a launch.
struct WindowProducts {
  std::string refusal;  // not empty: why the copy engine or wgmma cannot take the convolution
  std::vector<WindowProduct> parts;
  bool by_digits = false;  // no stride walks all pixels of a result
  bool along_m = false;    // neighbors of a result in memory are pixels; then by_digits, too
  bool image_is_a = true;  // else, of a filter's gradient, b, and a is dy
  Along along_of_a = Along::depth, along_of_b = Along::depth;
  double operand_bytes = 0;  // of both operands, each once
};
// The products over the operands after `packing`.
WindowProducts window_products(ConvolutionProblem const& problem, Gpu const& gpu,
                               PackRecipe const& packing = {});

// Whether the plan's launches are one, and its places, whose blocks are clusters.
bool run_together(ConvolutionRecipe const& recipe, WindowProducts const& windows);
Places places_of(WindowProducts const& windows, GemmRecipe const& recipe);
// The reason why one launch is impossible; empty if it is possible.
std::string together_violation(ConvolutionProblem const& problem, WindowProducts const& windows,
                               Partition partition);

Offer<ConvolutionProblem> warp_specialized_convolution(ConvolutionProblem const& problem,
                                                       Device const& device, PlanOptions const& options);

// Whether the recipe belongs to this algorithm.
bool is_window_product(ConvolutionRecipe const& recipe);

}  // namespace cosmati::plan
