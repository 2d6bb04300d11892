// Forward convolutions with few input channels, and data gradients of dy with few channels at stride 1, on
// tensor cores. The recipe has no fields of its own: the shape is a function of problem and device.
#pragma once
#include <algorithm>

#include "cosmati/conv/small_c/fprop_small_c_arguments.h"
#include "src/plan/conv/program.h"
#include "src/plan/integers.h"

namespace cosmati::plan {

struct FpropSmallCPlan {
  std::string refusal;  // not empty: why the kernel does not support the problem
  FpropSmallCShape shape;
  Index tiles = 0, blocks = 0, parts = 1;  // of the launch: blocks along x, parts of the filters along y
  double seconds = 0;                      // predicted
};
// The shape that is predicted to be fastest.
FpropSmallCPlan fprop_small_c_plan(ConvolutionProblem const& problem, Device const& device);

// Clocks of an mma of 16-bit factors on `gpu`, from those that a fit gave on an H200.
double small_c_mma_clocks(double on_h200, Gpu const& gpu);
// The number of pixels of a tile's patch of x, which may not fit in an int if strides are large.
Index patch_pixels(FpropSmallCShape const& shape);
inline constexpr Index max_patch_pixels = 1 << 16;
// The bytes that the kernels copy at a time of each pixel's channels: 16, 8 or 4; 0 if the channels are not
// contiguous, or not in such units.
int unit_of_channels(TensorDescription const& tensor);
// The elements of a pixel in shared memory if its channels are copied.
int place_of_copies(ConvolutionProblem const& problem);
// Whether the kernels copy x to shared memory: channels in units or, in a flat problem, adjacent pixels of
// any number of channels as one range.
bool has_copied_pixels(ConvolutionProblem const& problem, Device const& device);
// Whether a filter of one tap has an output for each pixel of x, in the same order, and the pixels are at
// equal distances.
bool is_flat(ConvolutionProblem const& problem);
// The same convolution of a single row of pixels; y's pixels are 0 elements apart if they are not at equal
// distances.
ConvolutionProblem flattened(ConvolutionProblem problem);

// Calls use(down, across) for the tiles that are tried: of about `outputs` outputs, which divide rows evenly;
// of a flat problem, one tile of all `outputs`.
template <class Use>
void for_small_c_tiles(ConvolutionProblem const& p, bool flat, int outputs, Use const& use) {
  Index const width = p.y.extent(3), height = p.y.extent(2), first = ceiling_divide(width, Index{outputs});
  if (flat) return use(1, outputs);
  for (Index of_row = first; of_row <= ceiling_divide(width, Index{8}); ++of_row) {
    Index const across = ceiling_divide(width, of_row);
    if (of_row > 1 && across == ceiling_divide(width, of_row - 1)) continue;
    use(to_int(std::min<Index>(height, outputs / across)), to_int(across));
  }
}

// The part of a kernel's arguments that describes x, the images' tiles and the extents of y, without
// pointers.
FpropSmallCArguments small_c_window(ConvolutionProblem const& problem, FpropSmallCShape const& shape);

std::string print(FpropSmallCShape const& shape);  // as C++
struct FpropSmallCTraits {
  FpropSmallCShape shape;
  bool fixed = true;  // the shape is a compile-time constant; otherwise the arguments contain it
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};
// The emulator's kernels, whose shapes are in the arguments.
constexpr FpropSmallCShape emulated_fprop_small_c_shape(bool async, int place, bool collects) {
  FpropSmallCShape shape;
  shape.warps = unfixed_fprop_warps, shape.async = async;
  shape.place = place, shape.result_bytes = collects ? 1 : 0;
  return shape;
}
program::Program fprop_small_c_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> fprop_small_c(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

}  // namespace cosmati::plan
