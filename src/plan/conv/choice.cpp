// Which algorithm, main loop, policy and split a convolution takes.
#include "src/plan/conv/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/convolution.h"
#include "src/backend/emulator/convolution.h"
#include "src/backend/emulator/emulated_policy.h"
#include "src/plan/conv/bias.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr Index most_extent = 0x7fffffff;

// All forms of a problem run by one kernel: with the widths and the direction that each of them has.
void unify(std::vector<ConvolutionForm>& forms) {
  auto const common = [&](WindowForm ConvolutionForm::*operand) {
    OperandAccess access = (forms.front().*operand).access;
    for (ConvolutionForm const& form : forms) {
      OperandAccess const& own = (form.*operand).access;
      if (own.along != access.along) access = {Along::depth, 1};
      access.width = std::min(access.width, own.width);
    }
    for (ConvolutionForm& form : forms) (form.*operand).access = access;
  };
  common(&ConvolutionForm::a);
  common(&ConvolutionForm::b);
  auto const narrowest = [&](auto const& width_of) {
    int width = 16;
    for (ConvolutionForm& form : forms) width = std::min(width, width_of(form));
    for (ConvolutionForm& form : forms) width_of(form) = width;
  };
  narrowest([](ConvolutionForm& form) -> int& { return form.d.width; });
  for (std::size_t i = 0; i < forms.front().operands.size(); ++i)
    narrowest([i](ConvolutionForm& form) -> int& { return form.operands[i].width; });
  for (std::size_t i = 0; i < forms.front().stores.size(); ++i)
    narrowest([i](ConvolutionForm& form) -> int& { return form.stores[i].width; });
}

std::vector<ConvolutionForm> unified_forms(Problem const& problem) {
  std::vector<ConvolutionForm> forms = forms_of(problem);
  unify(forms);
  return forms;
}

std::string problem_violation(Problem const& problem, Backend backend) {
  if (problem.direction == ConvolutionDirection::bias || problem.db.present()) return "sums no bias gradient";
  auto const& expression = problem.epilogue.expression;
  if (backend == Backend::cuda && (expression.operands().size() > max_convolution_operands ||
                                   expression.scalars().size() > max_convolution_operands ||
                                   expression.stores().size() > max_convolution_stores))
    return fmt::format(
        "the epilogue names {} arrays, {} scalars and {} stores; a kernel takes at most {}, {} and {}",
        expression.operands().size(), expression.scalars().size(), expression.stores().size(),
        max_convolution_operands, max_convolution_operands, max_convolution_stores);
  return {};
}

std::string extent_violation(std::vector<ConvolutionForm> const& forms) {
  for (ConvolutionForm const& form : forms)
    for (Index const extent : {form.rows(), form.columns(), form.depth()})
      if (extent > most_extent)
        return fmt::format("an index of the product has {} values; at most {}: divide the images", extent,
                           most_extent);
  return {};
}

GemmRecipe product_recipe(ConvolutionForm const& form) {
  GemmRecipe recipe;
  recipe.swapped = form.swapped;
  recipe.a = form.a.access;
  recipe.b = form.b.access;
  recipe.result_width = form.d.width;
  recipe.sum = form.sum;
  return recipe;
}

// Depths that a form has when each tap's channels are padded to whole steps.
Index padded_depth(ConvolutionForm const& form, int block_k) { return stepwise(form, block_k).depth(); }

// The place of every run of channels is found once a step where the padding costs less than that saves.
bool steps_by_taps(Problem const& problem, ConvolutionForm const& form, int block_k) {
  if (problem.direction == ConvolutionDirection::filter) return false;
  return static_cast<double>(padded_depth(form, block_k)) <= 1.15 * static_cast<double>(form.depth());
}

struct Way {
  MainLoop main_loop;
  Multiply multiply;
};

std::vector<Way> ways_of(ConvolutionForm const& form, Gpu const& gpu) {
  bool const bytes = is_byte(form.a.type) && is_byte(form.b.type);
  Multiply const simple = bytes ? Multiply::dp4a : Multiply::fma;
  std::vector<Way> ways{{MainLoop::double_buffered, simple}};
  if (gpu.major < 8) return ways;
  int const bytes_of_run = form.a.access.width * size_of(form.a.type);
  if (!bytes && bytes_of_run >= 4) ways.push_back({MainLoop::multistage, simple});
  bool const deep = form.a.access.along == Along::depth && form.b.access.along == Along::depth;
  bool const fp8 = is_fp8(form.a.type);
  if (mma_takes(form.a.type, form.b.type, form.sum) && (size_of(form.a.type) > 1 || deep) &&
      (!fp8 || 10 * gpu.major + gpu.minor >= 89))
    ways.push_back({MainLoop::multistage, Multiply::mma});
  return ways;
}

// "main_loop=multistage,large" without its first word, and that word's value.
std::string without_main_loop(std::string const& policy, std::string& main_loop) {
  constexpr std::string_view field = "main_loop=";
  std::size_t const at = policy.find(field);
  if (at == std::string::npos) return policy;
  std::size_t const end = std::min(policy.find(',', at), policy.size());
  main_loop = policy.substr(at + field.size(), end - at - field.size());
  std::string rest = policy.substr(0, at) + policy.substr(std::min(end + 1, policy.size()));
  if (!rest.empty() && rest.back() == ',') rest.pop_back();
  return rest;
}

class Search {
 public:
  Search(Problem const& problem, Device const& device, PlanOptions const& options)
      : problem_(problem), device_(device), options_(options) {
    offer_.refusal = problem_violation(problem, device.backend);
    if (!offer_.refusal.empty()) return;
    forms_ = unified_forms(problem);
    offer_.refusal = extent_violation(forms_);
  }

  Offer<Problem> best() {
    if (!offer_.refusal.empty()) return offer_;
    std::string main_loop;
    policy_ = without_main_loop(options_.policy, main_loop);
    offer_.refusal = "--policy " + options_.policy + " names no way to multiply " +
                     name_of(forms_.front().a.type) + " and " + name_of(forms_.front().b.type) + " here";
    for (Way const& way : ways_of(forms_.front(), device_.gpu)) {
      std::string const asked = std::string("multiply=") + name_of(way.multiply);
      if (!main_loop.empty() && main_loop != name_of(way.main_loop)) continue;
      if (policy_.find("multiply=") != std::string::npos && policy_.find(asked) == std::string::npos)
        continue;
      if (emulated() && !emulator::multiplies_convolution(way.main_loop, way.multiply, forms_.front().a.type,
                                                          forms_.front().b.type))
        continue;
      try_way(way);
    }
    return offer_;
  }

 private:
  bool emulated() const { return device_.backend == Backend::emulator; }

  void try_way(Way const& way) {
    int const element_bytes = size_of(forms_.front().a.type);
    GemmPolicy const own = emulator::emulated_policy(way.main_loop, way.multiply, element_bytes);
    std::vector<NamedPolicy> policies =
        named_policies(way.main_loop, way.multiply, forms_.front().sum, element_bytes);
    if (emulated()) policies = {{"emulated", own}};
    if (!policy_.empty()) policies = {parse_policy(policy_, policies, policies[emulated() ? 0 : 2])};
    if (emulated() && !(policies.front().policy == own)) {
      refuse("the emulator has one policy for each main loop and type: emulated");
      return;
    }
    for (NamedPolicy const& named : policies) try_policy(named);
  }

  void try_policy(NamedPolicy const& named) {
    ConvolutionForm const& front = forms_.front();
    ConvolutionRecipe recipe;
    recipe.product = product_recipe(front);
    recipe.launches = static_cast<int>(forms_.size());
    GemmRecipe& product = recipe.product;
    product.policy_name = named.name;
    product.policy = named.policy;
    // Rows are found by division: once for a run of them.
    if (!emulated() && policy_.find("epilogue=") == std::string::npos)
      product.policy.epilogue = EpilogueSchedule::staged;
    // Digits, places and the addresses of single elements take registers.
    bool const single = product.a.width == 1 || product.b.width == 1;
    product.policy.blocks = std::max(1, product.policy.blocks - (single ? 2 : 1));
    recipe.stepwise = steps_by_taps(problem_, front, product.policy.block_k);
    std::string sentence = policy_violation(product.policy, front.a.type, front.b.type, front.sum);
    int const shared = shared_storage_bytes(product, gemm_view(front));
    if (sentence.empty() && shared > device_.gpu.shared_bytes_per_block)
      sentence = fmt::format("needs {} bytes of shared memory a block; {} has {}", shared, device_.gpu.name,
                             device_.gpu.shared_bytes_per_block);
    if (!sentence.empty()) return refuse(sentence);
    for (int splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128})
      if (splits == 1 || may_split(product.policy, splits)) try_splits(recipe, splits);
  }

  bool may_split(GemmPolicy const& policy, int splits) const {
    Index tiles = 0, steps = most_extent;
    for (ConvolutionForm const& form : forms_) {
      tiles = std::max(tiles, tiles_of(policy, gemm_view(form)) * form.groups);
      steps = std::min(steps, form.depth() / policy.block_k);
    }
    return tiles < 4 * Index{device_.gpu.multiprocessors} && steps / splits >= 8;
  }

  void try_splits(ConvolutionRecipe recipe, int splits) {
    GemmRecipe& product = recipe.product;
    Partition const partition = splits > 1 ? Partition::split_k : Partition::tiles;
    std::size_t flags = 0, partials = 0;  // the launches use them one after the other
    double seconds = 0;
    for (ConvolutionForm const& form : forms_) {
      ConvolutionForm const stepped = recipe.stepwise ? stepwise(form, product.policy.block_k) : form;
      CanonicalGemm const view = gemm_view(stepped);
      divide(product, {partition, splits}, view, 0);
      seconds += predict_seconds(product, view, device_.gpu);
      flags = std::max(flags, product.flag_bytes);
      partials = std::max(partials, product.partial_bytes);
    }
    if (emulated()) product.policy.partition = Partition::split_k;
    product.flag_bytes = flags;
    product.partial_bytes = partials;
    product.predicted_seconds = seconds;
    std::size_t const widening = emulated() ? emulator::widening_bytes(problem_, recipe) : 0;
    std::size_t const workspace = product.flag_bytes + product.partial_bytes + widening;
    if (workspace > widening && workspace > options_.max_workspace)
      return refuse(
          fmt::format("needs {} bytes of workspace; at most {}", workspace, options_.max_workspace));
    if (!offer_.text.empty() && product.predicted_seconds >= offer_.predicted_seconds) return;
    std::string text = fmt::format("{}, {}", name_of(product.policy.main_loop), to_string(product));
    text += recipe.stepwise ? ", a tap a step" : ", depths found one by one";
    if (recipe.launches > 1) text += fmt::format(", {} launches", recipe.launches);
    offer_ = {{}, workspace, product.predicted_seconds, recipe, std::move(text)};
  }

  void refuse(std::string sentence) {
    if (offer_.text.empty()) offer_.refusal = std::move(sentence);
  }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  std::string policy_;
  std::vector<ConvolutionForm> forms_;
  Offer<Problem> offer_;
};

Offer<Problem> implicit_gemm(Problem const& problem, Device const& device, PlanOptions const& options) {
  return Search(problem, device, options).best();
}

Offer<Problem> direct(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty() && !options.policy.empty())
    offer.refusal = "takes no policy; --policy " + options.policy + " was asked for";
  if (!offer.refusal.empty()) return offer;
  std::vector<ConvolutionForm> const forms = unified_forms(problem);
  offer.refusal = extent_violation(forms);
  if (!offer.refusal.empty()) return offer;
  offer.recipe.algorithm = ConvolutionAlgorithm::direct;
  offer.recipe.product = product_recipe(forms.front());
  offer.recipe.launches = static_cast<int>(forms.size());
  double products = 0;
  for (ConvolutionForm const& form : forms)
    products += static_cast<double>(form.rows()) * static_cast<double>(form.columns()) *
                static_cast<double>(form.depth()) * static_cast<double>(form.groups);
  // Two loads and their addresses for a product: about a thirtieth of the multiply-adds' rate.
  double const rate = device.gpu.fma_f32 * device.gpu.multiprocessors * device.gpu.clock_hertz / 30;
  offer.predicted_seconds = 3e-6 * offer.recipe.launches + products / rate;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds;
  if (device.backend == Backend::emulator)
    offer.workspace_bytes = emulator::widening_bytes(problem, offer.recipe);
  offer.text = fmt::format("a thread an element, {} launches", offer.recipe.launches);
  return offer;
}

// The filter's gradient may have the bias gradient with it: another launch, behind it in the workspace.
template <Offer<Problem> (*offer_of)(Problem const&, Device const&, PlanOptions const&)>
Offer<Problem> offer_with_bias(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer = offer_of(problem, device, options);
  if (!problem.db.present() || !offer.refusal.empty()) return offer;
  offer.workspace_bytes = (offer.workspace_bytes + 255) / 256 * 256 + bias_workspace(problem, device);
  offer.text += ", then the bias gradient";
  return offer;
}

template <std::unique_ptr<Kernel<Problem>> (*prepare)(Plan<Problem> const&)>
std::unique_ptr<Kernel<Problem>> prepare_on(Plan<Problem> const& plan) {
  auto product = prepare(plan);
  return plan.problem.db.present() ? with_bias(plan, std::move(product)) : std::move(product);
}

}  // namespace

std::vector<ConvolutionForm> planned_forms(Problem const& problem, ConvolutionRecipe const& recipe) {
  std::vector<ConvolutionForm> forms = unified_forms(problem);
  if (recipe.stepwise)
    for (ConvolutionForm& form : forms) form = stepwise(form, recipe.product.policy.block_k);
  return forms;
}

CanonicalGemm gemm_view(ConvolutionForm const& form) {
  CanonicalGemm view;
  view.m = form.rows();
  view.n = form.columns();
  view.k = form.depth();
  view.batch = form.groups;
  view.swapped = form.swapped;
  view.a.type = form.a.type;
  view.b.type = form.b.type;
  view.d.type = form.d.type;
  view.d.width = form.d.width;
  view.sum = form.sum;
  view.evaluation = form.evaluation;
  view.identity = form.identity;
  return view;
}

std::vector<Candidate<Problem>> convolution_candidates(Backend backend) {
  auto* const prepare = backend == Backend::cuda ? &prepare_on<&cuda::prepare_convolution>
                                                 : &prepare_on<&emulator::prepare_convolution>;
  Candidate<Problem> general{"implicit_gemm", {}, nullptr, prepare};
  general.offer = &offer_with_bias<&implicit_gemm>;
  Candidate<Problem> simple{"direct", {}, nullptr, prepare};
  simple.offer = &offer_with_bias<&direct>;
  return {general, simple, bias_candidate()};
}

}  // namespace cosmati::plan
