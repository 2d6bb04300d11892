// Error bound of Winograd's convolution for given data.
#pragma once
#include "cosmati/ops/convolution.h"

namespace cosmati::plan {

// Returns a bound for each element of the result, (n, k, p, q) or (n, c, h, w), before the epilogue, in f64
// and dense, with U and V the transformed filters and image, |U| and |V| those of absolute values by absolute
// matrices, A the matrix of the result's transform for both dimensions, S the sum of |U V| over the n
// channels, u = 2^-24 and t the unit roundoff in which U and V are kept:
//
//   6 (sum over positions of A^2 (T + (n + 4) u^2 S^2))^1/2 + 10 u sum over positions of |A| S,
//   T = sum over channels of 2 t^2 (U V)^2 + 8 u^2 ((|U| V)^2 + (U |V|)^2).
//
// T: the error of a factor is one rounding of at most t and at most 8 roundings u of its transform; the rest
// of T are the additions of a product. Independent errors of at most b_i with mean 0 exceed 6 (sum of
// b_i^2)^1/2 with a probability below 4e-8 (Hoeffding 1963). The last term is the most that the result's
// transform adds. For a filter gradient, (k, c, r, s), n is the number of tiles of all images. Pointers are
// host pointers.
Tensor winograd_bound(Plan<ConvolutionProblem> const& plan, ConvolutionProblem::Arguments const& arguments);

}  // namespace cosmati::plan
