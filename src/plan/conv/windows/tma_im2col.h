// implicit_gemm through the warp_specialized main loop: a convolution whose image TMA unrolls (im2col mode),
// and whose result is a matrix in memory.
#pragma once
#include <string>
#include <vector>

#include "cosmati/conv/tma_im2col.h"
#include "cosmati/ops/convolution.h"
#include "src/plan/conv/form.h"
#include "src/plan/conv/phases.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {

// The contents of tensor maps. Dimensions of the image: channel, column, row, image; of the filter:
// contiguous index, tap's column, tap's row, line. Strides in elements.
struct ImageMap {
  Index extent[4] = {}, stride[4] = {};
  int lower[2] = {}, upper[2] = {}, step[2] = {1, 1};  // corners of windows: column, row
};
struct FilterMap {
  Index extent[4] = {}, stride[4] = {};
  Index base = 0;
};

// One product: d(m, n) with the depth padded to full steps of a tap; for the filter gradient, pixels are the
// depth, and taps and channels n.
struct WindowProduct {
  ConvolutionForm form;
  // a and b contain types, and strides for the prediction. d, the operands and the stores are matrices; if
  // WindowProducts::by_digits, the form describes them instead.
  CanonicalGemm product;
  ImageMap image, result;          // result: if WindowProducts::by_pixels
  FilterMap filter;                // unused for the filter gradient: dy is a matrix of the product
  ImageArguments image_arguments;  // without the maps
  FilterArguments filter_arguments;
};

// Which operand has the windows, and how both lie in shared memory.
struct WindowOperands {
  bool image_is_a = true;        // otherwise it is b
  bool filter_gradient = false;  // the other operand is a matrix, dy, instead of the filter
  Along along_of_a = Along::k, along_of_b = Along::k;
  int row_bytes = step_bytes;  // bytes of a step along k, which covers channels of one tap
};

// All products of a convolution: for a strided data gradient one per phase, which may share a launch. For a
// filter gradient the image is b, and both operands are MN-major; with dy transposed it is a, which may be
// MN-major for tf32, too.
struct WindowProducts : WindowOperands {
  std::string refusal;  // not empty: why TMA or wgmma does not support the convolution
  std::vector<WindowProduct> parts;
  // No single stride covers all pixels of a result: TMA may store them in im2col mode (by_pixels; operands of
  // the epilogue are matrices), or threads store them by digits.
  bool by_pixels = false, by_digits = false;
  bool along_m = false;      // pixels of a result are contiguous; implies by_digits
  double operand_bytes = 0;  // bytes of both operands, each counted once
};
// The products of the operands after `packing`, in steps of `row_bytes`.
WindowProducts window_products(ConvolutionProblem const& problem, Gpu const& gpu,
                               PackRecipe const& packing = {}, int row_bytes = step_bytes);
// The bytes of a step: those of a tap's channels if they fill at most half of a full step.
int bytes_of_step(ConvolutionProblem const& problem, PackRecipe const& packing, bool emulated);

// Whether threads locate the results by digits, including those that TMA could store, but not with this
// policy.
bool stores_by_digits(WindowProducts const& windows, GemmPolicy const& policy);

// Whether the plan is a single launch over all phases, whose blocks are clusters.
bool run_together(ConvolutionRecipe const& recipe, WindowProducts const& windows);
Phases phases_of(WindowProducts const& windows, GemmRecipe const& recipe);
// The reason why one launch is impossible; empty if it is possible.
std::string together_violation(ConvolutionProblem const& problem, WindowProducts const& windows,
                               Partition partition);

// The reason why TMA cannot load or store an empty tensor; empty if there is none.
std::string elements_violation(ConvolutionProblem const& problem);

// The time that TMA needs to unroll this many rows of windows, and the time of a product whose operands TMA
// loads meanwhile. clocks_of_row: clocks of a multiprocessor for 128 bytes, measured on an H200.
inline constexpr double clocks_of_row = 4.7;
double unrolling_seconds(double rows, double clocks, Gpu const& gpu);
double with_tma(double product, double engine);

Offer<ConvolutionProblem> warp_specialized_convolution(ConvolutionProblem const& problem,
                                                       Device const& device, PlanOptions const& options);

// Whether the recipe belongs to this algorithm.
bool is_window_product(ConvolutionRecipe const& recipe);

}  // namespace cosmati::plan
