// The convolution by Fourier transforms as a program, and the traits of its kernels.
#pragma once
#include <string>

#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct FftPlanesTraits {
  FftPlanesPolicy policy;
  std::string from;  // how elements are loaded
  DataType real = DataType::f32;
  std::string print() const;
};
struct FftFactorTraits {
  FftFactorPolicy policy;
  DataType real = DataType::f32, factor = DataType::f32;
  std::string print() const;
};
struct FftSumsTraits {
  FftSumsPolicy policy;
  DataType real = DataType::f32;
  std::string print() const;
};
struct FftProductTraits {
  DataType real = DataType::f32;
  std::string print() const;
};
struct FftResultTraits {
  FftResultPolicy policy;
  DataType real = DataType::f32;
  std::string epilogue, destination;
  std::string print() const;
};

program::Program fft_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
