// Composition, tuning choices and additional error bounds of each operation's kernels.
#include "cli/operations/composition.h"

#include "src/backend/cuda/executor.h"
#include "src/plan/conv/bias.h"
#include "src/plan/conv/fft/fft_bound.h"
#include "src/plan/conv/filter/wgrad_direct.h"
#include "src/plan/conv/nested/channels_last.h"
#include "src/plan/conv/nested/depth_taps.h"
#include "src/plan/conv/nested/group_slices.h"
#include "src/plan/conv/nested/image_products.h"
#include "src/plan/conv/nested/image_slices.h"
#include "src/plan/conv/nested/patch_gemm.h"
#include "src/plan/conv/plain_gemm.h"
#include "src/plan/conv/winograd/winograd_bound.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/gemm/tuning_candidates.h"
#include "src/plan/primitive/kernel.h"
#include "src/plan/primitive/lower.h"

namespace cosmati::cli {
namespace {

class GemmChoices final : public TuningChoices {
 public:
  GemmChoices(GemmProblem problem, Device device, PlanOptions options)
      : problem_(std::move(problem)), device_(std::move(device)), options_(std::move(options)) {}
  std::vector<TuningCandidate> tuning_candidates() const override {
    return plan::tuning_candidates(problem_, device_, options_);
  }
  std::vector<TuningCandidate> neighbors(TuningLine const& center) const override {
    return plan::neighbors(problem_, device_, options_, center);
  }
  std::vector<TuningCandidate> tuning_candidate_of(TuningLine const& line) const override {
    return plan::tuning_candidate_of(problem_, device_, options_, line);
  }

 private:
  GemmProblem problem_;
  Device device_;
  PlanOptions options_;
};

template <class Problem>
std::optional<Composition> composed(Plan<Problem> const& plan) {
  if (plan.device.backend != Backend::cuda) return {};
  auto const program = plan::program_of(plan);
  if (program.passes.empty()) return {};
  std::vector<jit::Source> sources;
  for (plan::PrimitivePass const& pass : program.passes)
    sources.push_back(cuda::kernel_source(plan::kernel_of(pass), plan.device.gpu));
  return Composition{sources.front(),
                     std::vector(sources.begin() + 1, sources.end()),
                     plan.kernel,
                     {},
                     plan::to_string(program),
                     program.passes[0].shared_bytes};
}

std::optional<Composition> composed(Plan<GemmProblem> const& plan) {
  if (plan.device.backend != Backend::cuda) return {};
  return composition_of(plan::program_of(plan), plan.device.gpu, plan.kernel, policy_text(plan.recipe),
                        to_string(plan.recipe));
}

Plan<ReduceProblem> bias_plan_of(Plan<ConvolutionProblem> const& plan) {
  return plan.recipe.algorithm == ConvolutionAlgorithm::depth_taps ? plan::plan_of_bias(plan)
                                                                   : plan::bias_plan(plan);
}

std::optional<Composition> without_bias_gradient(Plan<ConvolutionProblem> const& plan) {
  if (plan.device.backend != Backend::cuda) return {};
  if (plan.problem.direction == ConvolutionDirection::bias) {
    auto sum = composed(bias_plan_of(plan));
    if (sum) sum->kernel = plan.kernel;
    return sum;
  }
  if (plan.recipe.algorithm == ConvolutionAlgorithm::image_slices)
    return without_bias_gradient(plan::plan_of_slice(plan));
  if (plan.recipe.algorithm == ConvolutionAlgorithm::group_slices)
    return without_bias_gradient(plan::plan_of_group(plan));
  if (plan.recipe.algorithm == ConvolutionAlgorithm::depth_taps) {
    auto const planes = plan::plan_of_planes(plan);
    return planes ? without_bias_gradient(*planes) : std::nullopt;
  }
  if (plan.recipe.algorithm == ConvolutionAlgorithm::channels_last) {
    auto composition = without_bias_gradient(plan::plan_of_copied(plan));
    if (!composition) return composition;
    for (Plan<TransformProblem> const& copy : plan::plans_of_copies(plan))
      if (auto const pass = composed(copy)) composition->passes.push_back(pass->source);
    return composition;
  }
  auto const product_and_pass = [](Plan<GemmProblem> const& product, auto const& then) {
    auto composition = composed(product);
    if (!composition) return composition;
    if (auto const pass = composed(then)) composition->passes.push_back(pass->source);
    return composition;
  };
  if (plan.recipe.algorithm == ConvolutionAlgorithm::image_products)
    return product_and_pass(plan::plan_of_products(plan), plan::plan_of_sum(plan));
  if (plan.recipe.algorithm == ConvolutionAlgorithm::patch_gemm)
    return product_and_pass(plan::plan_of_patches(plan), plan::plan_of_places(plan));
  std::string const& recipe = plan.chosen().recipe;
  std::string const policy = plan.recipe.multiplies_matrices() ? policy_text(plan.recipe.product) : "";
  if (plan.recipe.algorithm == ConvolutionAlgorithm::gemm)
    return composition_of(plan::program_of(plan::plan_of_product(plan)), plan.device.gpu, plan.kernel, policy,
                          recipe);
  return composition_of(plan::program_of(plan), plan.device.gpu, plan.kernel, policy, recipe);
}

std::optional<Composition> composed(Plan<ConvolutionProblem> const& plan) {
  std::optional<Composition> composition = without_bias_gradient(plan);
  bool const is_apart = plan.problem.direction != ConvolutionDirection::bias && plan.problem.db.present() &&
                        !plan::makes_bias_gradient(plan.problem, plan.recipe);
  if (!composition || !is_apart) return composition;
  if (auto sum = composed(bias_plan_of(plan))) {
    composition->passes.push_back(std::move(sum->source));
    for (jit::Source& pass : sum->passes) composition->passes.push_back(std::move(pass));
  }
  return composition;
}

template <class Problem>
std::unique_ptr<TuningChoices> choices_of(Problem const& problem, Device const& device,
                                          PlanOptions const& options) {
  if constexpr (std::is_same_v<Problem, GemmProblem>)
    return std::make_unique<GemmChoices>(problem, device, options);
  else
    return nullptr;
}

template <class Problem>
std::vector<Tensor> errors_of(Plan<Problem> const&, typename Problem::Arguments const&) {
  return {};
}

std::vector<Tensor> errors_of(Plan<ConvolutionProblem> const& plan,
                              ConvolutionProblem::Arguments const& arguments);

// The added errors of all groups, if the kernel of one group has any.
std::vector<Tensor> errors_of_groups(Plan<ConvolutionProblem> const& plan,
                                     ConvolutionProblem::Arguments const& arguments) {
  Plan<ConvolutionProblem> const group = plan::plan_of_group(plan);
  plan::SliceSteps steps = plan::steps_of_groups(plan.problem);
  steps.operands.clear(), steps.stores.clear();  // bounds are those of the sums, and the arguments have none
  TensorDescription const& result = plan.problem.result();
  bool const of_filter = plan.problem.direction == ConvolutionDirection::filter;
  Index const outer = of_filter ? 1 : result.extent(0),
              inner = result.layout.size() / outer / plan.problem.groups;
  std::vector<Tensor> errors;
  for (Index g = 0; g < plan.problem.groups; ++g) {
    std::vector<Tensor> const own = errors_of(group, plan::SliceArguments(arguments, steps, g).arguments);
    if (own.empty()) return {};
    if (errors.empty()) errors.emplace_back(DataType::f64, result.layout.shape);
    for (Index i = 0; i < outer; ++i)
      for (Index j = 0; j < inner; ++j)
        errors[0].set((i * plan.problem.groups + g) * inner + j, own[0].get(i * inner + j));
  }
  return errors;
}

std::vector<Tensor> errors_of(Plan<ConvolutionProblem> const& plan,
                              ConvolutionProblem::Arguments const& arguments) {
  std::vector<Tensor> errors;
  if (plan.recipe.algorithm == ConvolutionAlgorithm::group_slices) errors = errors_of_groups(plan, arguments);
  bool const on_host = plan.device.backend == Backend::cpu && plan.kernel == "winograd";
  if (plan.recipe.algorithm == ConvolutionAlgorithm::winograd || on_host)
    errors.push_back(plan::winograd_bound(plan, arguments));
  if (plan.recipe.algorithm == ConvolutionAlgorithm::fft) errors.push_back(plan::fft_bound(plan, arguments));
  if (!errors.empty() && plan.problem.db.present()) {  // no transform computes the bias gradient
    errors.emplace_back(DataType::f64, plan.problem.db.layout.shape);
    errors.back().fill(0);
  }
  return errors;
}

unsigned shared_bytes_of(program::Program const& program) {
  return program.products.empty() ? program.kernels[program.main].shared_bytes
                                  : shared_bytes_of(plan::program_of(program.products.front()));
}

}  // namespace

Composition composition_of(program::Program const& program, Gpu const& gpu, std::string kernel,
                           std::string policy, std::string recipe) {
  std::vector<jit::Source> sources = cuda::kernel_sources(program, gpu);
  return {sources.front(),   std::vector(sources.begin() + 1, sources.end()),
          std::move(kernel), std::move(policy),
          std::move(recipe), static_cast<int>(shared_bytes_of(program))};
}

#define COSMATI_DEFINE(Problem, name)                                                                   \
  std::optional<Composition> composition_of(Plan<Problem> const& plan) { return composed(plan); }       \
  std::unique_ptr<TuningChoices> tuning_choices_of(Problem const& problem, Device const& device,        \
                                                   PlanOptions const& options) {                        \
    return choices_of(problem, device, options);                                                        \
  }                                                                                                     \
  std::vector<Tensor> added_errors_of(Plan<Problem> const& plan, Problem::Arguments const& arguments) { \
    return errors_of(plan, arguments);                                                                  \
  }
COSMATI_EACH_OPERATION(COSMATI_DEFINE)
#undef COSMATI_DEFINE

}  // namespace cosmati::cli
