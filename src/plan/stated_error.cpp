// Expected rounding errors of matrix products and convolutions that sum products one by one.
#include "src/plan/stated_error.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/ops/number_types.h"
#include "src/plan/conv/winograd/winograd.h"

namespace cosmati::plan {
namespace {

// Tensor cores ignore the bits of an f32 that tf32 lacks. The relative error of a truncation has a mean
// square of 4 * 0.18 u^2 and a mean of 0.5 / ln 2 u, for logarithmically uniform mantissas; the errors of
// both factors of a product are added.
double const truncated_factors = std::sqrt(2 * 4 * 0.18 + 2 * std::pow(0.5 / std::log(2), 2));

bool on_gpu(Device const& device) {
  return device.backend == Backend::cuda || device.backend == Backend::emulator;
}

// The type of the sums: naive loops compute in f64, host kernels ignore a request for f16.
DataType sum_of(DataType a, DataType b, char const* kernel) {
  DataType const sum = accumulator_type(a, b);
  return std::string_view(kernel) == "reference" && !is_integer(sum) ? DataType::f64 : sum;
}

// The number of pixels of an image or volume, or of taps of a filter.
Index spatial_size(TensorDescription const& tensor) {
  Index size = 1;
  for (int d = 2; d < tensor.layout.rank(); ++d) size *= tensor.extent(d);
  return size;
}

Index terms_of(ConvolutionProblem const& problem) {
  Index const taps = spatial_size(problem.w);
  switch (problem.direction) {
    case ConvolutionDirection::forward: return problem.w.extent(1) * taps;
    case ConvolutionDirection::data: return problem.w.extent(0) / std::max<Index>(1, problem.groups) * taps;
    default: return problem.y.extent(0) * spatial_size(problem.y);
  }
}

}  // namespace

double stated_error(GemmProblem const& problem, Device const& device, char const* kernel,
                    GemmRecipe const& recipe) {
  bool const tensor_cores = on_gpu(device) && recipe.policy.multiply != Multiply::fma;
  // Tensor cores sum products of fp8 with fewer bits than f32 has, by an undocumented amount.
  if (tensor_cores && (is_float8(problem.a.type) || is_float8(problem.b.type))) return 0;
  DataType const sum = on_gpu(device)
                           ? problem.accumulator.value_or(accumulator_type(problem.a.type, problem.b.type))
                           : sum_of(problem.a.type, problem.b.type, kernel);
  double const of_sums = sums_error(sum, problem.k());
  bool const cuts = tensor_cores && problem.a.type == DataType::tf32 && problem.b.type == DataType::tf32;
  double const of_factors = cuts ? truncated_factors * unit_roundoff(DataType::tf32) : 0;
  return std::sqrt(of_sums * of_sums + of_factors * of_factors);
}

double stated_error(ConvolutionProblem const& problem, Device const&, char const* kernel,
                    ConvolutionRecipe const&) {
  bool const data = problem.direction == ConvolutionDirection::data;
  DataType const of_image = data ? problem.y.type : problem.x.present() ? problem.x.type : problem.y.type;
  bool const filter = problem.direction == ConvolutionDirection::forward || data;
  DataType const other = filter ? problem.w.type : problem.y.type;
  return sums_error(sum_of(of_image, other, kernel), terms_of(problem));
}

}  // namespace cosmati::plan
