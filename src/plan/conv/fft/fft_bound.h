// Error bound of a convolution by Fourier transforms for given data.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// Returns a bound for each element of the result before the epilogue, in f64 and dense; it is the same for
// all elements that come from one plane of L positions. With x and w the planes of the n channels that are
// summed, |.| the root of the sum of squares, s(.) the sum, u the unit roundoff of the transforms and t that
// of the factors:
//
//   6 (((2 t^2 + 4 u^2 log2 L) S + 2 n u^2 (S + D^2)) / L)^1/2,
//   S = sum over the channels of |x|^2 |w|^2 + s(x)^2 s(w)^2 / L,   D = sum over the channels of |s(x) s(w)|
//   / L^1/2.
//
// A transform spreads its rounding errors over all frequencies, and the inverse transform over all positions.
// S estimates the sum of the squared products of both spectra, divided by L, for spectra that are flat except
// for their mean, like those of random data. Independent errors exceed 6 times the root of the sum of their
// squares with a probability below 4e-8 (Hoeffding 1963). Pointers are host pointers.
Tensor fft_bound(Plan<ConvolutionProblem> const& plan, ConvolutionProblem::Arguments const& arguments);

}  // namespace cosmati::plan
