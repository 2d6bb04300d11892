// Choice of main loop, policy and split for a matrix product.
#include "src/plan/gemm/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cosmati/gemm/group_arguments.h"
#include "src/ops/architecture.h"
#include "src/plan/best_offer.h"
#include "src/plan/buffers.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/each_matrix.h"
#include "src/plan/gemm/invariant.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/multiplies.h"
#include "src/plan/gemm/operand_paths.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/gemm/recipe/finish.h"
#include "src/plan/gemm/recipe/recipe.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/small/tiny.h"
#include "src/plan/gemm/tiles/fitted_tiles.h"
#include "src/plan/gemm/tuning.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/gemm/warp_specialized_f64.h"

namespace cosmati {

namespace plan {
namespace {

// The policies of one multiply, for a problem or a group.
struct PolicySearch {
  MainLoop main_loop;
  Multiply multiply;
  GemmProblem const& problem;  // for a group, one of its members
  CanonicalGemm const& form;   // the product after repacking; for a group, what its members share
  Device const& device;
  PlanOptions const& options;
  GemmRecipe const* passes = nullptr;  // repack operands; null if there are none
  GroupForm const* group = nullptr;
  // The best prediction so far for other than fitted tiles, in all paths; of those, the ones that are taken.
  double* unfitted = nullptr;

  bool emulated() const { return device.backend == Backend::emulator; }
  bool invariant() const { return keeps_order(options, form.sum); }
  bool takes_tiles() const { return multiply == Multiply::wgmma && !emulated(); }
  bool fits_tiles() const { return takes_tiles() && !invariant() && group == nullptr; }
  bool is_specialized_f64() const {
    return main_loop == MainLoop::warp_specialized && multiply == Multiply::mma;
  }
  bool any_policy() const { return takes_any_policy(options.policy, multiply); }
  // The emulator widens operand types that its kernels do not have; a kernel then sees a single type.
  std::size_t widening_bytes() const {
    return emulated() ? emulator::widening_bytes(problem, multiply) : std::size_t{0};
  }
};

bool streams(MainLoop main_loop) { return main_loop == MainLoop::gemv || main_loop == MainLoop::tiny; }

// Selects the policies that exist and that the request permits; returns the reason if there is none.
std::string select_policies(PolicySearch const& search, std::vector<NamedPolicy>& policies) {
  PolicyRequest const& request = search.options.policy;
  int const element_bytes = size_of(search.form.a.type);
  GemmPolicy const own = emulator::emulated_policy(search.main_loop, search.multiply, element_bytes);
  policies = search.emulated()                    ? std::vector<NamedPolicy>{{"emulated", own}}
             : search.main_loop == MainLoop::gemv ? gemv_policies(search.form)
             : search.main_loop == MainLoop::tiny
                 ? tiny_policies(search.multiply, search.form.sum, element_bytes,
                                 std::min(access_of(search.form.a).width, access_of(search.form.b).width),
                                 search.form.k)
                 : product_policies(search.main_loop, search.multiply, search.form.sum, element_bytes);
  bool const of_group = search.group != nullptr && request.names.empty();
  if (search.fits_tiles() || (search.takes_tiles() && (of_group || !request.names.empty()))) {
    EpilogueSchedule const schedule =
        request.epilogue.value_or(epilogue_schedule(search.problem.epilogue.expression));
    if (of_group)
      append_tile_of_groups(policies, search.form, search.device.gpu, schedule);
    else
      append_tiles(policies, search.form, search.device.gpu, schedule, request.names);
  }
  if (policies.empty())
    return fmt::format("multiply {}: a lane would load too many single elements", name_of(search.multiply));
  if (std::string foreign = search.emulated() ? "" : foreign_policy(request, policies); !foreign.empty())
    return foreign;
  if (!request.empty()) {
    std::size_t const large = std::min<std::size_t>(2, policies.size() - 1);  // base for changed fields
    NamedPolicy named = requested_policy(request, policies, policies[large]);
    named.policy.partition = own.partition;  // chosen below
    if (!search.any_policy()) policies = {std::move(named)};
    if (search.emulated() && !(policies.front().policy == own))
      return "--policy " + request.text + ": the emulator has one policy for each kernel and type: emulated";
  }
  if ((search.problem.by_pointers || search.group != nullptr) && search.widening_bytes() > 0)
    return "the emulator has no kernel for these types; it converts them to wider types, but not through "
           "pointers";
  return search.invariant() ? keep_invariant(policies, request.partition) : std::string{};
}

void choose_epilogue(GemmPolicy& policy, PolicySearch const& search) {
  if (search.options.policy.epilogue || streams(search.main_loop)) return;  // these have `direct` only
  // With tensor cores a thread holds only two adjacent elements of a row, so full-width stores need staging
  // in shared memory. With f64 it holds four, which suffice.
  if (!search.emulated())
    policy.epilogue = search.multiply == Multiply::wmma ||
                              (search.multiply == Multiply::mma && search.form.sum != DataType::f64)
                          ? EpilogueSchedule::staged
                          : epilogue_schedule(search.problem.epilogue.expression);
  // Results that TMA cannot store are staged, then stored in runs along a row.
  if (search.multiply == Multiply::wgmma && !stores_by_tma(policy, search.form))
    policy.epilogue = EpilogueSchedule::staged;
}

// Chooses the bound on registers, expressed as a number of resident blocks.
void bound_registers(GemmRecipe& recipe, PolicySearch const& search, bool any_policy) {
  GemmPolicy& policy = recipe.policy;
  // With up to 256 threads per multiprocessor every bound allows the maximum number of registers, but the
  // bound still changes the assembler's schedule. Which bound is faster depends on the major of a
  // (docs/decisions/0004).
  if (streams(policy.main_loop)) return;
  bool const bound = policy.blocks * policy.threads() > 256;
  if (!bound && search.multiply == Multiply::fma && recipe.a.along == Along::mn && any_policy)
    policy.blocks = 1;
  // Single-element loads each need registers for an address, and the search for a group's member needs a few
  // more.
  if (search.multiply != Multiply::wgmma &&
      (recipe.a.width == 1 || recipe.b.width == 1 || search.group != nullptr))
    policy.blocks = std::max(1, policy.blocks - 1);
}

// A tile that covers D in whole rounds is not split, but the steps of two rounds may be streamed.
std::vector<KPartition> partitions_to_try(GemmRecipe const& recipe, NamedPolicy const& named,
                                          PolicySearch const& search) {
  if (search.invariant()) return std::vector<KPartition>(1);
  bool const emulated = search.emulated();
  std::optional<Partition> const asked = search.options.policy.partition;
  bool const has_all = !emulated || (asked && !recipe.a.by_threads && !recipe.b.by_threads);
  bool const has_stream_k =
      !emulated || emulator::has_stream_k(search.problem, search.main_loop, search.multiply);
  bool const has_sum_of_parts = !emulated || emulator::has_sum_of_parts(search.problem, search.multiply);
  bool const splits = !named.is_fitted || !search.any_policy();
  return partitions_worth_trying(
      recipe, search.form, search.device.gpu,
      {asked, has_all && has_stream_k, splits,
       has_all && has_sum_of_parts && !search.form.by_pointers && search.multiply == Multiply::wgmma});
}

// Tries the partitions that are worth trying for the work of a policy, which has the given volume.
void search_partitions(BestOffer<GemmProblem>& best, GemmRecipe const& undivided, Volume const& volume,
                       NamedPolicy const& named, double share, PolicySearch const& search) {
  CanonicalGemm const& form = search.form;
  std::vector<KPartition> const k_partitions = partitions_to_try(undivided, named, search);
  if (k_partitions.empty()) best.refuse(no_partition(search.options.policy.partition));
  std::size_t const widening = search.widening_bytes();
  for (KPartition const& k_partition : k_partitions) {
    if (k_partition.partition == Partition::split_k &&
        !best.takes(least_seconds_of_parts(undivided, form, search.device.gpu, volume, k_partition.splits)))
      continue;
    GemmRecipe recipe = undivided;
    std::string no = partition_violation(recipe, k_partition, form);
    if (no.empty() && k_partition.partition == Partition::split_k_parallel)
      no = store_parts(recipe, form, search.device, search.options.policy.epilogue.has_value());
    if (!no.empty()) {
      best.refuse(std::move(no));
      continue;
    }
    finalize_recipe(recipe, k_partition, form, search.device, volume);
    std::size_t const own = workspace_of(recipe), workspace = emulator::with_operands(own, widening);
    if (own > 0 && workspace > search.options.max_workspace) {
      if (&k_partition == &k_partitions.front())  // parts need more workspace than complete tiles
        best.refuse(workspace_violation(workspace, search.options.max_workspace));
      continue;
    }
    // On an H100, predicted gains of 0.4 to 2.2 % by stream-K at 4096^3, 6144^3 and 10240x4096x4096 turned
    // out to be losses of 2 to 4 %; predicted gains of more than 10 % were real. In f64, 3 % were real, and
    // on an H200 1 % of 75 us in bf16; of 12 longer products with predicted gains of 2 to 4 %, 8 were slower
    // (docs/decisions/0045).
    constexpr double long_seconds = 100e-6;
    bool const doubtful = k_partition.partition == Partition::stream_k && !search.is_specialized_f64() &&
                          recipe.predicted_seconds > long_seconds &&
                          !(best.found() && best.offer().recipe.policy.partition == Partition::stream_k);
    double const gain = doubtful ? 0.95 : 1.0;
    // Where predictions are good, a margin for fitted tiles costs more than it saves (docs/decisions/0045).
    bool const is_short = named.is_fitted && is_short_round(recipe, form, search.device.gpu, volume);
    if (best.takes(recipe.predicted_seconds, gain * (is_short ? std::min(1.0, share / named.share) : share)))
      best.take({{}, workspace, recipe.predicted_seconds, recipe, {}});
  }
}

// Stores the policy that is predicted to be fastest in `best`.
void search_policies(BestOffer<GemmProblem>& best, PolicySearch const& search) {
  std::vector<NamedPolicy> policies;
  if (std::string why = select_policies(search, policies); !why.empty()) return best.refuse(std::move(why));
  bool const any_policy = search.any_policy();
  GemmRecipe recipe = recipe_for(search.main_loop, search.form);
  if (search.passes != nullptr) {
    recipe.repack_a = search.passes->repack_a;
    recipe.repack_b = search.passes->repack_b;
  }
  bool const may_skip = search.fits_tiles() && any_policy;
  double none = std::numeric_limits<double>::infinity();
  double& unfitted = search.unfitted != nullptr ? *search.unfitted : none;
  for (NamedPolicy const& named : policies) {  // fitted tiles follow the others
    // 1 if there is no other tile: `unfitted` is infinite.
    double const share = named.is_fitted ? std::min(1.0, named.share * unfitted / best.seconds()) : 1.0;
    if (may_skip && is_half_empty(named.policy, search.form)) continue;
    recipe.policy_name = named.name;
    recipe.policy = named.policy;
    recipe.policy.promotes = search.form.of_pieces && search.multiply == Multiply::wgmma;
    recipe.policy.fast_sums = search.form.fast_sums && search.multiply == Multiply::wgmma;
    if (search.multiply == Multiply::wgmma && !search.emulated() && search.group == nullptr &&
        !search.options.policy.block_k)
      shorten_steps(recipe.policy, search.form);
    Volume const volume = search.group == nullptr ? volume_of(search.form, recipe) : Volume{};
    if (may_skip && !best.takes(least_seconds_of_parts(recipe, search.form, search.device.gpu, volume, 1),
                                std::min(1.0, share / named.share)))
      continue;
    choose_epilogue(recipe.policy, search);
    bound_registers(recipe, search, any_policy);
    std::string refusal = form_violation(recipe, search.form, search.device.gpu);
    if (!refusal.empty()) {
      best.refuse(std::move(refusal));
    } else if (search.group == nullptr) {
      search_partitions(best, recipe, volume, named, share, search);
      if (!named.is_fitted && best.found()) unfitted = std::min(unfitted, best.seconds());
    } else {
      finalize_recipe(recipe, *search.group, search.device.gpu);
      if (best.takes(recipe.predicted_seconds, named.share))
        best.take({{}, 0, recipe.predicted_seconds, recipe, {}});
    }
  }
}

// Returns the offer with the text of its recipe, or the refusal. The text is made only here because a search
// often replaces its best offer.
Offer<GemmProblem> result_of(BestOffer<GemmProblem>&& best) {
  Offer<GemmProblem> offer = std::move(best).result();
  if (offer.refusal.empty()) offer.text = to_string(offer.recipe);
  return offer;
}

// The policy and operand paths that are predicted to be fastest with wgmma. The text includes the predictions
// for the other paths, of exchanged operands only if they are faster; a refusal is that of the first path.
Offer<GemmProblem> best_path(GemmProblem const& problem, Device const& device, PlanOptions const& asked) {
  std::optional<Offer<GemmProblem>> best;  // or the refusal of the first path
  PlanOptions options = asked;
  options.policy.operands.reset();
  bool best_is_short = false;  // then exchanging operands needs no margin
  double unfitted = std::numeric_limits<double>::infinity();
  std::vector<std::pair<OperandPath, double>> predicted;
  for (OperandPath const& path : operand_paths(problem, invariant_side(problem, options))) {
    if (!is_of_kind(path, asked.policy.operands) || (options.batch_invariant && takes_registers(path)))
      continue;
    if (problem.by_pointers && device.backend == Backend::emulator &&
        !emulator::pointers_violation(path.form).empty())
      continue;
    if (device.backend == Backend::emulator && (path.form.a.by_threads || path.form.b.by_threads)) {
      CanonicalGemm const left = repacked(path.form, path.passes);
      if (!emulator::has_wgmma_by_threads(left.a.type, access_of(left.a), access_of(left.b))) continue;
    }
    Offer<GemmProblem> offer;
    CanonicalGemm const left = repacked(path.form, path.passes);
    std::string const refusal = wgmma_violation(left, device.gpu);
    if (refusal.empty()) {
      std::optional<double> limit;
      if (path.exchanged && best && best->refusal.empty())
        limit = (best_is_short ? 1 : 0.97) * best->predicted_seconds;
      BestOffer<GemmProblem> of_path(limit);
      search_policies(of_path, {MainLoop::warp_specialized, Multiply::wgmma, problem, left, device, options,
                                &path.passes, nullptr, &unfitted});
      offer = result_of(std::move(of_path));
    } else {
      offer.refusal = refusal;
    }
    std::string const as_it_lies = wgmma_violation(path.form, device.gpu);
    if (!offer.refusal.empty() && refusal.empty() && !as_it_lies.empty())
      offer.refusal = as_it_lies + "; with the operand repacked: " + offer.refusal;
    if (offer.refusal.empty()) predicted.emplace_back(path, offer.predicted_seconds);
    if (!best || (offer.refusal.empty() &&
                  (!best->refusal.empty() || offer.predicted_seconds < best->predicted_seconds))) {
      best = std::move(offer);
      best_is_short = best->refusal.empty() &&
                      is_short_round(best->recipe, left, device.gpu, volume_of(left, best->recipe));
    }
  }
  if (!best) {
    best.emplace();
    best->refusal = "--policy " + asked.policy.text + ": no operand of this problem can use this path";
    if (problem.by_pointers) {
      CanonicalGemm const form = canonical(problem);
      bool const emulated = device.backend == Backend::emulator;
      std::string why = emulated ? emulator::pointers_violation(form) : std::string{};
      if (why.empty()) why = wgmma_violation(form, device.gpu);
      best->refusal = "by pointers: " + why;
    }
  }
  if (predicted.size() < 2) return *best;
  for (auto const& [path, seconds] : predicted)
    best->note +=
        fmt::format("{}{}: {:.4g} us", best->note.empty() ? "" : "; ", to_string(path), seconds * 1e6);
  best->note = "predicted, " + best->note;
  return *best;
}

// On GPUs without wgmma, 8-bit operands that mma.sync cannot read are first copied to be contiguous along k.
// With wgmma, warp_specialized does the same.
void search_copied_bytes(BestOffer<GemmProblem>& best, GemmProblem const& problem, Device const& device,
                         PlanOptions const& options) {
  if (features_of(device.gpu).wgmma || problem.by_pointers) return;
  OperandPath const path = operand_paths(problem, invariant_side(problem, options)).front();
  if (path.passes.repack_a.bytes + path.passes.repack_b.bytes == 0) return;
  CanonicalGemm const left = repacked(path.form, path.passes);
  if (mma_violation(left, device.gpu).empty())
    search_policies(best,
                    {MainLoop::multistage, Multiply::mma, problem, left, device, options, &path.passes});
}

Offer<GemmProblem> offer_of(MainLoop main_loop, GemmProblem const& problem, Device const& device,
                            PlanOptions const& options, GroupForm const* group = nullptr) {
  CanonicalGemm const form =
      group != nullptr ? group->common : form_for(main_loop, problem, invariant_side(problem, options));
  std::optional<Multiply> asked = options.policy.multiply;
  bool const copies = main_loop == MainLoop::multistage;
  BestOffer<GemmProblem> best;
  auto const search = [&](Multiply multiply) {
    search_policies(best, {main_loop, multiply, problem, form, device, options, nullptr, group});
  };
  auto const refused = [](std::string reason) {
    Offer<GemmProblem> offer;
    offer.refusal = std::move(reason);
    return offer;
  };
  if (keeps_order(options, form.sum) && !asked) {
    std::string why = invariant_violation(main_loop, form, device.gpu, options.kernel);
    if (!why.empty()) return refused(std::move(why));
    asked = invariant_multiply(form, device.gpu, options.kernel);
  }
  std::size_t const scalars = problem.epilogue.expression.scalars().size();
  if (device.backend == Backend::cuda && scalars > max_kernel_operands)
    return refused(
        fmt::format("the epilogue names {} scalars; a kernel supports at most {}: bind some to constants",
                    scalars, max_kernel_operands));
  if (streams(main_loop)) {
    bool const few_rows = main_loop == MainLoop::gemv;
    std::string why = few_rows ? gemv_violation(form) : tiny_violation(form);
    if (!why.empty()) return refused(std::move(why));
    if (few_rows) {
      if (asked.value_or(Multiply::fma) != Multiply::fma)
        return refused(fmt::format("multiply {} was requested; gemv has fma", name_of(*asked)));
      search(Multiply::fma);
      return result_of(std::move(best));
    }
    std::vector<Multiply> const multiplies = tiny_multiplies(form, device.gpu);
    for (Multiply const multiply : multiplies)
      if (asked.value_or(multiply) == multiply) search(multiply);
    if (!best.found() && asked)
      best.refuse(fmt::format("multiply {} was requested; for these types, tiny has {}", name_of(*asked),
                              name_of(multiplies.front())));
    return result_of(std::move(best));
  }
  if (main_loop == MainLoop::warp_specialized && group != nullptr) {
    if (std::string why = wgmma_violation(*group, device.gpu); !why.empty()) return refused(std::move(why));
    search(Multiply::wgmma);
    return result_of(std::move(best));
  }
  if (main_loop == MainLoop::warp_specialized && form.sum == DataType::f64) {
    std::string why = specialized_f64_violation(form, device.gpu);
    if (why.empty() && options.policy.operands) why = "operands= does not apply to f64";
    if (why.empty() && asked && asked != Multiply::mma)
      why = fmt::format("multiply {} was requested; warp_specialized in f64 has mma", name_of(*asked));
    if (why.empty() && keeps_order(options, form.sum))
      why = "batch_invariant: multistage multiplies f64 in another order";
    if (!why.empty()) return refused(std::move(why));
    search(Multiply::mma);
    return result_of(std::move(best));
  }
  if (main_loop == MainLoop::warp_specialized) return best_path(problem, device, options);
  if (options.policy.operands)
    return refused("--policy " + options.policy.text + ": operands= applies only to warp_specialized");
  // mma is preferred where it exists, because wmma does the same slightly slower. wmma is for GPUs without
  // mma, or on request.
  if (asked == Multiply::wmma || (!asked && !features_of(device.gpu).mma && !copies)) {
    std::string const refusal = wmma_violation(form, device.gpu);
    if (refusal.empty())
      search(Multiply::wmma);
    else if (asked)
      best.refuse(refusal);
  }
  Multiply const simple = simple_multiply(form);
  if (asked != Multiply::mma && asked != Multiply::wmma) {
    // This reason concerns speed only; it is ignored if the kernel is requested by name.
    std::string const slow =
        copies && options.kernel != name_of(main_loop) ? copies_violation(form) : std::string{};
    if (slow.empty())
      search(simple);
    else
      best.refuse(slow);
  }
  if (!copies && asked == Multiply::mma) best.refuse("multiply mma requires main loop multistage");
  // Single bytes would be loaded and stored one at a time.
  bool const single_bytes =
      size_of(form.a.type) == 1 && std::min(access_of(form.a).width, access_of(form.b).width) < 4;
  if (copies && (asked ? asked == Multiply::mma : !single_bytes)) {
    std::string const refusal = mma_violation(form, device.gpu);
    if (refusal.empty())
      search(Multiply::mma);
    else if (asked)
      best.refuse(refusal);
  }
  if (copies && size_of(form.a.type) == 1 && group == nullptr && (!asked || asked == Multiply::mma))
    search_copied_bytes(best, problem, device, options);
  return result_of(std::move(best));
}

// Replaces the predicted choice with the measured one, if there is one for this main loop.
Offer<GemmProblem> with_tuning(Offer<GemmProblem> offer, MainLoop main_loop, GemmProblem const& problem,
                               Device const& device, PlanOptions const& options) {
  if (!options.policy.empty() || options.batch_invariant || device.backend != Backend::cuda) return offer;
  TuningLine const* const line = find_line(options, problem, device);
  if (line == nullptr || line->kernel != name_of(main_loop)) return offer;
  std::vector<OperandPath> paths(1);
  if (main_loop == MainLoop::warp_specialized && canonical(problem).sum != DataType::f64)
    paths = operand_paths(problem);
  else
    paths.front().form = form_for(main_loop, problem);
  GemmRecipe recipe;  // the one predicted to be fastest
  std::string why;    // the reason given by the first path, if all are rejected
  if (paths.empty()) why = "it would copy operands, and these are arrays of pointers";
  for (OperandPath const& path : paths) {
    CanonicalGemm const form = repacked(path.form, path.passes);
    GemmRecipe next = recipe_for(main_loop, form);
    next.repack_a = path.passes.repack_a;
    next.repack_b = path.passes.repack_b;
    next.policy_name = "tuned";
    next.policy = policy_of(*line);
    next.splits = line->splits;
    std::string wrong = "the kernel is rejected";
    if (offer.refusal.empty()) wrong = measured_violation(next, form, device.gpu);
    if (wrong.empty())
      finalize_recipe(next, {next.policy.partition, next.splits}, form, device, volume_of(form, next));
    if (wrong.empty() && workspace_of(next) > options.max_workspace)
      wrong = fmt::format("it needs a workspace of {} bytes; the limit is {}", workspace_of(next),
                          options.max_workspace);
    if (!wrong.empty() && why.empty()) why = wrong;
    if (!wrong.empty()) continue;
    if (recipe.policy_name.empty() || next.predicted_seconds < recipe.predicted_seconds) recipe = next;
  }
  if (recipe.policy_name.empty()) {
    offer.note = fmt::format("{} is ignored: {}", line->origin, why);
    return offer;
  }
  std::size_t const workspace = workspace_of(recipe);
  std::string note = fmt::format("measured, {}: {} took {:.4g} us, as planned {:.4g} us", line->origin,
                                 line->measured, line->seconds * 1e6, line->planned_seconds * 1e6);
  if (is_measured(*line, problem, device.gpu)) recipe.predicted_seconds = line->seconds;
  return {{}, workspace, recipe.predicted_seconds, recipe, to_string(recipe), std::move(note), 0, true};
}

std::string architecture_violation(GemmProblem const&, Device const& device) {
  return feature_violation("cp.async", &Features::async_copy, device.gpu);
}

template <MainLoop main_loop>
Candidate<GemmProblem> candidate() {
  Candidate<GemmProblem> result{name_of(main_loop), {}, nullptr, &prepare_program};
  result.offer = [](GemmProblem const& problem, Device const& device, PlanOptions const& options) {
    return with_tuning(offer_of(main_loop, problem, device, options), main_loop, problem, device, options);
  };
  result.takes_pointers = true;
  result.batch_invariant = true;
  if (main_loop == MainLoop::multistage) result.requirements = {{&architecture_violation}};
  return result;
}

}  // namespace

Offer<GemmProblem> group_offer(MainLoop main_loop, GroupedGemmProblem const& problem, GroupForm const& group,
                               Device const& device, PlanOptions const& options) {
  if (main_loop == MainLoop::multistage)
    if (std::string refusal = architecture_violation({}, device); !refusal.empty()) return {refusal};
  return offer_of(main_loop, problem.members.front(), device, options, &group);
}

std::vector<Candidate<GemmProblem>> gemm_candidates(Backend backend) {
  std::vector<Candidate<GemmProblem>> list{
      candidate<MainLoop::warp_specialized>(), candidate<MainLoop::multistage>(),
      candidate<MainLoop::double_buffered>(), candidate<MainLoop::gemv>(), candidate<MainLoop::tiny>()};
  if (backend == Backend::emulator) list.push_back(each_matrix_candidate());
  return list;
}

}  // namespace plan
}  // namespace cosmati
