// The convolution by Fourier transforms as a program, and the traits of its kernels.
#pragma once
#include <string>

#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct FftPlanesTraits {
  std::string from;  // how elements are loaded
  DataType real = DataType::f32;
  bool across = false;
  std::string print() const;
};
struct FftFactorTraits {
  DataType real = DataType::f32, factor = DataType::f32;
  bool twice = false;
  FftDoubled doubled = FftDoubled::image;
  std::string print() const;
};
struct FftSumsTraits {
  DataType real = DataType::f32;
  FftDoubled doubled = FftDoubled::image;
  std::string print() const;
};
struct FftProductTraits {
  DataType real = DataType::f32;
  std::string print() const;
};
struct FftResultTraits {
  DataType real = DataType::f32;
  bool across = false, image_is_a = true;
  std::string epilogue, destination;
  std::string print() const;
};

program::Program fft_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
