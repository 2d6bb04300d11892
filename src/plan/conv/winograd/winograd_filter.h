// Filter gradients of 3x3 filters by Winograd's convolution: tiles of x and dy are transformed, a batch of
// products adds them over all tiles of a slice of images, and the sums of the slices become taps.
#pragma once
#include <string>

#include "src/plan/conv/program.h"
#include "src/plan/conv/winograd/winograd.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> winograd_filter(ConvolutionProblem const& problem, Device const& device,
                                          PlanOptions const& options);
program::Program winograd_filter_program(Plan<ConvolutionProblem> const& plan);

// The forward convolution with the same tensors, whose windows of x are those of the gradient.
ConvolutionProblem forward_of(ConvolutionProblem const& gradient);

struct WinogradGradientTraits {
  WinogradGradientPolicy policy;
  std::string from, to;
  std::string print() const;
};
struct WinogradTapsTraits {
  WinogradTapsPolicy policy;
  std::string epilogue, destination;
  std::string print() const;
};

}  // namespace cosmati::plan
