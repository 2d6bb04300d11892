// The order of the phases of a data gradient, and their shares of the workspace.
#include "src/plan/conv/phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"

namespace cosmati::plan {

Index blocks_of(ConvolutionForm const& form, ConvolutionRecipe const& recipe) {
  constexpr Index direct_threads = 128;  // DirectTraits
  if (recipe.is_direct()) return (form.rows() * form.columns() + direct_threads - 1) / direct_threads;
  return tiles_of(recipe.product.policy, gemm_view(form));
}

Phases phases_of(std::vector<ConvolutionForm> const& forms, ConvolutionRecipe const& recipe) {
  Phases phases;
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (forms[i].rows() > 0 && forms[i].columns() > 0) phases.list.push_back({i});
  std::stable_sort(phases.list.begin(), phases.list.end(), [&](Phase const& x, Phase const& y) {
    return forms[x.form].depth() > forms[y.form].depth();
  });
  GemmRecipe product = recipe.product;
  for (Phase& phase : phases.list) {
    ConvolutionForm const& form = forms[phase.form];
    phase.first_block = static_cast<int>(phases.blocks);
    phases.blocks += blocks_of(form, recipe);
    if (recipe.is_direct()) continue;
    divide(product, {product.policy.partition, product.splits}, gemm_view(form), 0);
    phase.flags = phases.flag_bytes;
    phase.partials = phases.partial_bytes;
    phases.flag_bytes += product.flag_bytes;
    phases.partial_bytes += product.partial_bytes;
  }
  return phases;
}

namespace {

std::string together_violation(std::size_t phases, std::size_t bytes) {
  constexpr std::size_t max_bytes = 32764;  // of a kernel's parameters, for compute capability 7.0 and later
  constexpr std::size_t max_before = 128;   // for the parameters before the array of phases
  if (phases < 2) return "there is only one product";
  if (phases > max_phases_of_launch)
    return fmt::format("{} phases; a launch supports {}", phases, max_phases_of_launch);
  if (phases * bytes + max_before > max_bytes)
    return fmt::format("{} phases with {} bytes of parameters each; a launch supports {}", phases, bytes,
                       max_bytes);
  return {};
}

}  // namespace

std::string together_violation(ConvolutionProblem const& problem, std::vector<ConvolutionForm> const& forms) {
  std::size_t const bytes = with_epilogue_arguments(
      problem, []<class Epilogue>(Epilogue const&) { return sizeof(ConvolutionParameters<Epilogue>); });
  return together_violation(forms.size(), bytes);
}

std::string together_violation(ConvolutionProblem const& problem, WindowProducts const& windows,
                               Partition partition) {
  if (partition == Partition::stream_k) return "stream-K ranges of steps cannot span phases";
  if (windows.filter_gradient || !(windows.by_digits || windows.by_pixels))
    return "there is only one product";
  // Parameters with DigitArguments for the operands are larger than those with matrices.
  std::size_t const bytes = with_epilogue_arguments(problem, []<class Epilogue>(Epilogue const&) {
    return sizeof(GemmParameters<ImageArguments, FilterArguments, Epilogue, DigitArguments>);
  });
  return together_violation(windows.parts.size(), bytes + (windows.by_pixels ? sizeof(ResultArguments) : 0));
}

Phases phases_of(WindowProducts const& windows, GemmRecipe const& product) {
  Phases phases;
  for (std::size_t i = 0; i < windows.parts.size(); ++i) phases.list.push_back({i});
  std::stable_sort(phases.list.begin(), phases.list.end(), [&](Phase const& x, Phase const& y) {
    return windows.parts[x.form].product.k > windows.parts[y.form].product.k;
  });
  GemmRecipe recipe = product;
  GemmPolicy const& p = product.policy;
  for (Phase& phase : phases.list) {
    CanonicalGemm const& form = windows.parts[phase.form].product;
    divide(recipe, {p.partition, product.splits}, form, 0);
    phase.first_block = static_cast<int>(phases.blocks);
    phase.flags = phases.flag_bytes;
    phase.partials = phases.partial_bytes;
    phases.blocks += tiles_of(p, form) / (p.cluster_m * p.cluster_n) * product.splits;
    phases.flag_bytes += recipe.flag_bytes;
    phases.partial_bytes += recipe.partial_bytes;
  }
  return phases;
}

bool run_together(ConvolutionRecipe const& recipe, WindowProducts const& windows) {
  return recipe.launches == 1 && windows.parts.size() > 1;
}

bool run_together(ConvolutionRecipe const& recipe, std::vector<ConvolutionForm> const& forms) {
  bool const by_phases = recipe.algorithm == ConvolutionAlgorithm::implicit_gemm || recipe.is_direct();
  return by_phases && recipe.launches == 1 && forms.size() > 1;
}

ScheduleArguments schedule_of_phase(ScheduleArguments schedule, Phase const& phase) {
  schedule.flags += phase.flags / sizeof(unsigned long long);
  schedule.partials = static_cast<std::byte*>(schedule.partials) + phase.partials;
  return schedule;
}

}  // namespace cosmati::plan
