// Winograd's convolution as a program, and the traits of its kernels.
#pragma once
#include <string>

#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct WinogradFilterTraits {
  WinogradFilterPolicy policy;
  std::string from, to;  // how elements are loaded and stored
  std::string print() const;
};
struct WinogradImageTraits {
  WinogradImagePolicy policy;
  std::string from, to;
  std::string print() const;
};
struct WinogradResultTraits {
  WinogradResultPolicy policy;
  std::string epilogue, destination;
  std::string print() const;
};

// Transforms the filter; then, for each slice of images, transforms the image, computes a batch of products,
// and transforms the sums.
program::Program winograd_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
