// A forward convolution with a 1x1 filter as a matrix product of pixels and filters: copies the pixels that
// are used if there is a stride, then multiplies.
#include <string>
#include <utility>

#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/own.h"
#include "src/plan/conv/plain_gemm.h"

namespace cosmati::cpu {
namespace {

using plan::PlainGemm, plan::plain_gemm_problem;
using Problem = ConvolutionProblem;

// A view of the pixels of x that the filters use.
TensorDescription strided_view(Problem const& problem) {
  TensorDescription seen = problem.x;
  for (int i : {0, 1}) {
    seen.layout.shape.extent[2 + i] = problem.y.extent(2 + i);
    seen.layout.stride[2 + i] *= problem.stride[i];
  }
  return seen;
}

bool has_stride(Problem const& problem) { return problem.stride[0] != 1 || problem.stride[1] != 1; }

// The same convolution on a dense copy of those pixels; the problem itself if there is no stride.
Problem without_stride(Problem problem) {
  if (!has_stride(problem)) return problem;
  problem.x = converted_description("x", Role::input, strided_view(problem), {problem.x.type});
  problem.stride[0] = problem.stride[1] = 1;
  return problem;
}

class GemmConvolution final : public HostKernel<Problem> {
 public:
  GemmConvolution(Problem const& problem, Device const& device)
      : problem_(problem),
        dense_(without_stride(problem)),
        product_(prepare(make_plan(plain_gemm_problem(dense_).problem, device, {}))),
        threads_(device.threads) {}

  void run(Problem::Arguments const& arguments, std::byte* workspace) const override {
    GemmProblem::Arguments product;
    product.a = arguments.x;
    if (has_stride(problem_)) {
      std::byte* const pixels = workspace + round_up(product_.workspace_bytes());
      convert_elements(strided_view(problem_), arguments.x, dense_.x, pixels, threads_);
      product.a = pixels;
    }
    product.b = arguments.w;
    product.d = arguments.y;
    product.operands = arguments.operands;
    product.scalars = arguments.scalars;
    product.stores = arguments.stores;
    product_.run(product, workspace);
  }

 private:
  Problem problem_, dense_;
  Prepared<GemmProblem> product_;
  int threads_;
};

std::string violates_product(Problem const& problem, Device const& device) {
  if (problem.direction != ConvolutionDirection::forward) return "the direction must be forward";
  if (problem.y.layout.size() == 0) return "y is empty";
  if (has_stride(problem) && (problem.x.layout.overlaps() || problem.groups != 1))
    return "with a stride, x must not overlap and there must be one group";
  PlainGemm const made = plain_gemm_problem(without_stride(problem));
  if (!made.refusal.empty()) return made.refusal;
  if (make_plan(made.problem, device, {}).kernel == "reference") return "no fast kernel supports the product";
  return {};
}

// oneDNN's convolutions repack the filters in each run; a product reads them in place, which pays off with
// many weights and few pixels. Measured against oneDNN's best in f32, NHWC, N = 1 and 16, on 1x1 layers of
// ResNet-50 and MobileNetV2: 1.0 to 3.9 times as fast inside these bounds, 0.8 to 1.1 outside; with NCHW 0.5
// to 1.4.
std::string advises_against_product(Problem const& problem, Device const&) {
  constexpr Index fewest_weights = Index{1} << 17;
  Index const max_pixels = has_stride(problem) ? 4096 : 1024;
  Index const weights = problem.w.layout.size(), pixels = problem.y.layout.size() / problem.y.extent(1);
  if (problem.x.type != DataType::f32 || problem.w.type != DataType::f32)
    return "the types are not f32; it was measured with f32 only";
  if (problem.x.layout.stride[1] != 1 || problem.y.layout.stride[1] != 1)
    return "the channels are not contiguous; it was measured with contiguous ones";
  if (weights < fewest_weights || pixels > max_pixels)
    return "there are " + std::to_string(weights) + " weights for " + std::to_string(pixels) +
           " pixels; it pays off with at least " + std::to_string(fewest_weights) + " weights and at most " +
           std::to_string(max_pixels) + " pixels";
  return {};
}

std::size_t product_workspace(Problem const& problem, Device const& device) {
  Problem const dense = without_stride(problem);
  std::size_t const product = make_plan(plain_gemm_problem(dense).problem, device, {}).workspace_bytes;
  return has_stride(problem) ? round_up(product) + static_cast<std::size_t>(dense.x.bytes()) : product;
}

}  // namespace

Candidate<Problem> host_product_candidate() {
  return {"gemm",
          {{violates_product}, {advises_against_product, true}},
          product_workspace,
          [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            return std::make_unique<GemmConvolution>(plan.problem, plan.device);
          }};
}

}  // namespace cosmati::cpu
