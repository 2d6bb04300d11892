// Tuning candidates: variations of the plan's choice and of a measured choice.
#include "src/plan/gemm/tuning_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/ops/architecture.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/tiles/fitted_tiles.h"
#include "src/plan/gemm/tuning.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/make_plan.h"

namespace cosmati::plan {
namespace {

constexpr double hopeless = 3;  // times the smallest prediction; the model's error is smaller than that
constexpr std::size_t max_tuning_candidates = 24;
constexpr int all_splits[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256};
constexpr int all_widths[] = {64, 96, 128, 160, 192, 256};  // of a wgmma block tile

PlanOptions without_choices(PlanOptions options) {
  options.policy = {};
  options.tuning.reset();
  return options;
}

bool is_same(TuningCandidate const& x, TuningCandidate const& y) {
  return x.line.kernel == y.line.kernel && x.line.policy == y.line.policy && x.line.splits == y.line.splits;
}

void append_new(std::vector<TuningCandidate>& list, std::vector<TuningCandidate> const& more) {
  for (TuningCandidate const& one : more)
    if (std::none_of(list.begin(), list.end(),
                     [&](TuningCandidate const& known) { return is_same(known, one); }))
      list.push_back(one);
}

// The next smaller and the next larger value in a list.
template <std::size_t count>
std::vector<int> beside(int const (&list)[count], int value) {
  std::vector<int> result;
  auto const* const above = std::upper_bound(std::begin(list), std::end(list), value);
  auto const* const from = std::lower_bound(std::begin(list), std::end(list), value);
  if (from != std::begin(list)) result.push_back(*(from - 1));
  if (above != std::end(list)) result.push_back(*above);
  return result;
}

// Other rasters; the order of tiles matters only if there are more tiles than multiprocessors.
std::vector<GemmPolicy> rasters(GemmPolicy const& centre, Index tiles, Gpu const& gpu) {
  std::vector<GemmPolicy> list;
  if (tiles <= gpu.multiprocessors) return list;
  GemmPolicy policy = centre;
  policy.raster = centre.raster == Raster::along_m ? Raster::along_n : Raster::along_m;
  list.push_back(policy);
  policy = centre;
  for (int const width : {centre.raster_width / 2, centre.raster_width * 2})
    if (width >= 1 && width <= 64) {
      policy.raster_width = width;
      list.push_back(policy);
    }
  return list;
}

std::vector<GemmPolicy> tiles_beside(GemmPolicy const& centre) {
  std::vector<GemmPolicy> list;
  if (centre.main_loop != MainLoop::warp_specialized) return list;
  GemmPolicy policy = centre;
  for (int const width : beside(all_widths, centre.block_n)) {
    if (centre.warp_n != centre.block_n) break;
    policy.block_n = policy.warp_n = width;
    policy.thread_n = width / 4;
    list.push_back(policy);
  }
  policy = centre;
  policy.ping_pong = !centre.ping_pong;
  list.push_back(policy);
  policy = centre;
  policy.cluster_m = centre.cluster_m == 1 ? 2 : 1;
  list.push_back(policy);
  policy = centre;
  policy.cluster_n = centre.cluster_n == 1 ? 2 : 1;
  list.push_back(policy);
  return list;
}

std::vector<GemmPolicy> schedules_beside(GemmPolicy const& centre) {
  std::vector<GemmPolicy> list;
  GemmPolicy policy = centre;
  for (int const stages : {centre.stages - 1, centre.stages + 1}) {
    policy.stages = stages;
    if (stages > 0) list.push_back(policy);
  }
  policy = centre;
  policy.blocks = centre.blocks == 1 ? 2 : centre.blocks - 1;
  list.push_back(policy);
  policy = centre;
  policy.epilogue =
      centre.epilogue == EpilogueSchedule::direct ? EpilogueSchedule::staged : EpilogueSchedule::direct;
  list.push_back(policy);
  return list;
}

// The policies that exist for every main loop, and for warp_specialized also those of products, by name, and
// the tiles fitted to this one, by their fields.
std::vector<std::string> names_to_measure(GemmProblem const& problem, Gpu const& gpu,
                                          std::string const& kernel) {
  std::vector<std::string> names{"small", "medium", "large", "tall", "wide", "huge"};
  if (kernel != name_of(MainLoop::warp_specialized)) return names;
  CanonicalGemm const form = canonical(problem);
  if (form.sum == DataType::f64) return names;
  std::vector<NamedPolicy> policies = warpgroup_policies(size_of(form.a.type), form.sum);
  append_tiles(policies, form, gpu, epilogue_schedule(problem.epilogue.expression), {});
  for (NamedPolicy const& policy : policies)
    if (std::find(names.begin(), names.end(), policy.name) == names.end())
      names.push_back(policy.is_fitted ? text_of(policy.policy) : policy.name);
  return names;
}

}  // namespace

TuningLine line_of(GemmProblem const& problem, Gpu const& gpu, std::string const& only, GemmPolicy policy,
                   int splits) {
  if (policy.partition == Partition::split_k_parallel && splits == 1) policy.partition = Partition::tiles;
  if (policy.partition != Partition::split_k_parallel &&
      (splits > 1 || policy.partition == Partition::split_k))
    policy.partition = splits > 1 ? Partition::split_k : Partition::tiles;
  TuningLine line;
  line.problems = gemm_class(problem, only);
  line.gpu = tuning_name(gpu);
  line.kernel = name_of(policy.main_loop);
  line.policy = text_of(policy);
  line.splits = splits;
  line.measured = extents_text(problem.m(), problem.n(), problem.k(), problem.batch());
  line.origin = "this measurement";
  return line;
}

std::vector<TuningCandidate> tuning_candidate_of(GemmProblem const& problem, Device const& device,
                                                 PlanOptions const& options, TuningLine line) {
  PlanOptions own = without_choices(options);
  TuningTable table;
  table.add(line);
  own.tuning = std::make_shared<TuningTable const>(std::move(table));
  auto plan = make_plan(problem, device, own);
  if (plan.kernel != line.kernel || text_of(plan.recipe.policy) != line.policy ||
      plan.recipe.splits != line.splits)
    return {};
  plan.recipe.policy_name.clear();
  return {{std::move(line), plan.recipe.predicted_seconds, to_string(plan.recipe)}};
}

std::vector<TuningCandidate> tuning_candidates(GemmProblem const& problem, Device const& device,
                                               PlanOptions const& options) {
  if (device.backend != Backend::cuda || gemm_class(problem, "").empty()) return {};
  PlanOptions named = without_choices(options);
  auto const own = make_plan(problem, device, named);
  std::vector<TuningCandidate> first, others;
  auto const add_to = [&](std::vector<TuningCandidate>& list, GemmRecipe const& recipe) {
    append_new(list, tuning_candidate_of(
                         problem, device, options,
                         line_of(problem, device.gpu, options.kernel, recipe.policy, recipe.splits)));
  };
  add_to(first, own.recipe);
  named.built_in_tuning = false;  // also measures what would be chosen without a built-in line
  auto const add_policy = [&](Candidate<GemmProblem> const& candidate, PolicyRequest policy) {
    named.policy = std::move(policy);
    Offer<GemmProblem> const offer = offer_of(candidate, problem, device, named);
    if (offer.refusal.empty()) add_to(others, offer.recipe);
  };
  for (auto const& candidate : candidates<GemmProblem>(device.backend)) {
    if (candidate.offer == nullptr || (!options.kernel.empty() && options.kernel != candidate.name)) continue;
    add_policy(candidate, {});
    bool const few_rows = candidate.name == name_of(MainLoop::gemv);
    if (few_rows || candidate.name == name_of(MainLoop::tiny)) {
      for (char const* const name : {"k1", "k2", "k4", "k8", "k16", "narrow_k4", "narrow_k8", "narrow_k16",
                                     "short_k", "8x8", "8x16", "16x8", "16x16", "16x32", "32x16", "32x32"})
        add_policy(candidate, name);
      continue;
    }
    for (std::string const& name : names_to_measure(problem, device.gpu, candidate.name))
      for (Multiply const multiply : {Multiply::fma, Multiply::half2, Multiply::dp4a, Multiply::mma,
                                      features_of(device.gpu).mma ? Multiply::wgmma : Multiply::wmma})
        for (std::optional<Partition> const partition :
             {std::optional<Partition>{}, {Partition::stream_k}, {Partition::split_k_parallel}}) {
          PolicyRequest policy = name;
          policy.multiply = multiply;
          policy.partition = partition;
          add_policy(candidate, std::move(policy));
        }
  }
  std::stable_sort(others.begin(), others.end(), [](TuningCandidate const& x, TuningCandidate const& y) {
    return x.predicted_seconds < y.predicted_seconds;
  });
  if (!others.empty())
    std::erase_if(others, [minimum = others.front().predicted_seconds](TuningCandidate const& one) {
      return one.predicted_seconds > hopeless * minimum;
    });
  append_new(first, others);
  if (first.size() > max_tuning_candidates) first.resize(max_tuning_candidates);
  return first;
}

std::vector<TuningCandidate> neighbors(GemmProblem const& problem, Device const& device,
                                       PlanOptions const& options, TuningLine const& centre) {
  std::vector<TuningCandidate> list;
  GemmPolicy const policy = policy_of(centre);
  auto const add = [&](GemmPolicy const& other, int splits) {
    append_new(list, tuning_candidate_of(problem, device, options,
                                         line_of(problem, device.gpu, options.kernel, other, splits)));
  };
  CanonicalGemm const form = canonical(problem);
  Index const tiles = tiles_of(policy, form) * form.batch;
  if (tiles < 4 * Index{device.gpu.multiprocessors} && form.batch <= 65535)
    for (int const splits : beside(all_splits, centre.splits)) add(policy, splits);
  if (centre.splits > 1) add(policy, 1);
  GemmPolicy other = policy;
  other.partition = policy.partition == Partition::stream_k ? Partition::tiles : Partition::stream_k;
  add(other, 1);
  for (auto const& others :
       {tiles_beside(policy), rasters(policy, tiles, device.gpu), schedules_beside(policy)})
    for (GemmPolicy const& one : others) add(one, centre.splits);
  return list;
}

}  // namespace cosmati::plan
