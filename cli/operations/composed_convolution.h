// What `cosmati compile` and `explain` say of a convolution's kernel, and what `verify` allows it.
#pragma once
#include "cli/operations/primitive_composition.h"
#include "cli/operations/task.h"
#include "src/backend/cuda/convolution.h"
#include "src/backend/cuda/fft.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/repack.h"
#include "src/backend/cuda/winograd.h"
#include "src/plan/conv/bias.h"
#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/fft/fft_bound.h"
#include "src/plan/conv/filter_tiled.h"
#include "src/plan/conv/image_slices.h"
#include "src/plan/conv/plain_gemm.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/conv/winograd/winograd_bound.h"
#include "src/plan/gemm/model.h"

namespace cosmati::cli {

template <>
struct Composer<ConvolutionProblem> {
  static std::optional<Composition> compose(Plan<ConvolutionProblem> const& plan) {
    std::optional<Composition> composition = without_bias_gradient(plan);
    bool const is_apart = plan.problem.direction != ConvolutionDirection::bias && plan.problem.db.present() &&
                          !plan::makes_bias_gradient(plan.problem, plan.recipe);
    if (!composition || !is_apart) return composition;
    if (auto sum = PrimitiveComposer<ReduceProblem>::compose(plan::bias_plan(plan))) {
      composition->passes.push_back(std::move(sum->source));
      for (jit::Source& pass : sum->passes) composition->passes.push_back(std::move(pass));
    }
    return composition;
  }

 private:
  static std::optional<Composition> without_bias_gradient(Plan<ConvolutionProblem> const& plan) {
    if (plan.device.backend != Backend::cuda) return {};
    if (plan.problem.direction == ConvolutionDirection::bias) {
      auto sum = PrimitiveComposer<ReduceProblem>::compose(plan::bias_plan(plan));
      if (sum) sum->kernel = plan.kernel;
      return sum;
    }
    if (plan.recipe.algorithm == ConvolutionAlgorithm::image_slices)
      return without_bias_gradient(plan::plan_of_slice(plan));
    std::string recipe;
    for (Considered const& entry : plan.considered)
      if (entry.kernel == plan.kernel) recipe = entry.recipe;
    if (plan.recipe.algorithm == ConvolutionAlgorithm::gemm) {
      Plan<GemmProblem> const product = plan::plan_of_product(plan);
      return Composition{cuda::gemm_source(product), cuda::repack_sources(product), plan.kernel, recipe,
                         plan::shared_storage_bytes(product.recipe, plan::canonical(product.problem))};
    }
    if (plan.recipe.algorithm == ConvolutionAlgorithm::fft &&
        plan::fft_pointwise(plan::fft_forms(plan.problem).front())) {
      std::vector<jit::Source> passes = cuda::fft_sources(plan);
      jit::Source const result = std::move(passes.front());
      passes.erase(passes.begin());
      return Composition{result, std::move(passes), plan.kernel, recipe,
                         fft_shared_bytes(size_of(plan.recipe.fft.real), 1)};
    }
    bool const winograd = plan.recipe.algorithm == ConvolutionAlgorithm::winograd;
    if (winograd || plan.recipe.algorithm == ConvolutionAlgorithm::fft) {
      Plan<GemmProblem> const product = winograd ? plan::winograd_product(plan) : plan::fft_product(plan);
      std::vector<jit::Source> passes = winograd ? cuda::winograd_sources(plan) : cuda::fft_sources(plan);
      for (jit::Source& repack : cuda::repack_sources(product)) passes.push_back(std::move(repack));
      return Composition{cuda::gemm_source(product), std::move(passes), plan.kernel, recipe,
                         plan::shared_storage_bytes(product.recipe, plan::canonical(product.problem))};
    }
    return Composition{cuda::convolution_source(plan), cuda::convolution_passes(plan), plan.kernel, recipe,
                       cuda::convolution_shared_bytes(plan)};
  }
};

template <>
struct AddedErrors<ConvolutionProblem> {
  static std::vector<Tensor> of(Plan<ConvolutionProblem> const& plan,
                                ConvolutionProblem::Arguments const& arguments) {
    std::vector<Tensor> errors;
    if (plan.recipe.algorithm == ConvolutionAlgorithm::winograd)
      errors.push_back(plan::winograd_bound(plan, arguments));
    if (plan.recipe.algorithm == ConvolutionAlgorithm::fft) {
      errors.push_back(plan::fft_bound(plan, arguments));
      if (plan.problem.db.present()) {  // which no transform computes
        errors.emplace_back(DataType::f64, plan.problem.db.layout.shape);
        for (Index k = 0; k < errors.back().size(); ++k) errors.back().as<double>()[k] = 0;
      }
    }
    return errors;
  }
};

}  // namespace cosmati::cli
