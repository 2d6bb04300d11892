// Chooses the policy, partition and packing that are predicted to be fastest for a product with im2col by
// TMA.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/plan/best_offer.h"
#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/windows/packing.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/tiles/fitted_tiles.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// The share of a tile's columns that is outside the result.
double share_outside(GemmPolicy const& p, CanonicalGemm const& form) {
  auto const columns = to_double(ceiling_divide(form.n, p.block_n) * p.block_n);
  return 1 - to_double(form.n) / columns;
}

// Bytes per second for results that are stored along m, in addition to the product's model. Measured: 0.5e12
// to 1.4e12.
constexpr double bytes_along_m = 0.7e12;

// Clocks of a row of a filter whose columns are contiguous: 128x208 in rows of 32 bytes took 2570 clocks per
// step on an H200, of which 600 are those of the windows.
constexpr double clocks_of_filter_row = 2.3;

// Tries every policy and partition; keeps the one predicted to be fastest.
class WindowSearch {
 public:
  WindowSearch(Problem const& problem, Device const& device, PlanOptions const& options,
               WindowProducts const& windows, PackRecipe const& packing)
      : problem_(problem),
        device_(device),
        options_(options),
        policy_(options.policy),
        windows_(windows),
        packing_(packing) {}

  Offer<Problem> best() {
    policy_.main_loop.reset();
    if (options_.policy.main_loop.value_or(MainLoop::warp_specialized) != MainLoop::warp_specialized) {
      refuse("--policy " + options_.policy.text + " selects another main loop");
      return std::move(best_).result();
    }
    if (policy_.tile || policy_.extent) {
      refuse("has neither Winograd tiles nor FFT transforms; --policy " + options_.policy.text +
             " was requested");
      return std::move(best_).result();
    }
    int const size = size_of(front().a.type);
    // A 1x1 filter is a plain product, for which the policies have been measured.
    bool const one_tap = has_one_tap(problem_) && policy_.empty();
    std::vector<NamedPolicy> policies = window_policies(size, one_tap);
    if (!policy_.names.empty() || (policy_.empty() && !windows_.filter_gradient))
      append_tiles(policies, front(), device_.gpu, epilogue_schedule(problem_.epilogue.expression),
                   policy_.names, true);
    std::erase_if(policies, [&](NamedPolicy const& tile) {
      return tile.is_fitted && blocks_with_windows(tile.policy) > 1 && !worth_sharing(tile.policy);
    });
    GemmPolicy const own = emulator::emulated_window_policy(size, windows_.filter_gradient);
    if (emulated()) policies = {{"emulated", own}};
    if (std::string foreign = foreign_policy(policy_, policies); !emulated() && !foreign.empty()) {
      refuse(std::move(foreign));
      return std::move(best_).result();
    }
    PolicyRequest but_partition = policy_;
    but_partition.partition.reset();
    if (!but_partition.empty()) {
      policies = {requested_policy(policy_, policies, policies[emulated() ? 0 : 2])};
      policies.front().policy.partition = own.partition;  // chosen below
    }
    if (emulated() && !(policies.front().policy == own)) {
      refuse("--policy " + options_.policy.text +
             ": the emulator has one policy for each kernel and type: emulated");
      return std::move(best_).result();
    }
    for (NamedPolicy const& named : policies) try_policy(named);
    if (!best_.found() && !best_.refused())
      refuse(fmt::format("--policy {}: {} launches, the first with {} steps, cannot be partitioned this way",
                         options_.policy.text, windows_.parts.size(),
                         front().k * size_of(front().a.type) / windows_.row_bytes));
    return std::move(best_).result();
  }

 private:
  bool emulated() const { return device_.backend == Backend::emulator; }
  // The first product; all launches share its data types and widths.
  CanonicalGemm const& front() const { return windows_.parts.front().product; }
  bool is_one() const { return windows_.parts.size() == 1; }

  void try_policy(NamedPolicy const& named) {
    CanonicalGemm const& form = front();
    GemmRecipe recipe;
    recipe.policy_name = named.name;
    recipe.policy = named.policy;
    recipe.a = {windows_.along_of_a, max_vector_bytes / size_of(form.a.type)};
    recipe.b = {windows_.along_of_b, max_vector_bytes / size_of(form.b.type)};
    recipe.result_width = form.d.width;
    recipe.sum = form.sum;
    GemmPolicy& p = recipe.policy;
    if (!policy_.block_k) p.block_k = windows_.row_bytes / size_of(form.a.type);
    if (!emulated() && !policy_.epilogue) {
      p.epilogue = epilogue_schedule(problem_.epilogue.expression);
      if (!stores_by_tma(p, form)) p.epilogue = EpilogueSchedule::staged;
    }
    // The staged epilogue finds index digits by division only once per run.
    if (stores_by_digits(windows_, p)) p.epilogue = EpilogueSchedule::staged;
    std::string sentence = policy_violation(p, form.a.type, form.b.type, form.sum);
    int const size = size_of(form.b.type);
    if (sentence.empty()) sentence = columns_violation(p, recipe.b.along, size);
    if (sentence.empty()) sentence = slices_violation(p, recipe.a.along, recipe.b.along, size);
    // A box of windows has the channels of one tap.
    if (sentence.empty() && !windows_.image_is_a) sentence = boxes_violation(p, size);
    int const sharing = blocks_with_windows(p);
    if (sentence.empty() && sharing > 1 && windows_.filter_gradient)
      sentence =
          fmt::format("cluster_{} = {}: blocks do not share the windows of a filter gradient; it must be 1",
                      windows_.image_is_a ? 'n' : 'm', sharing);
    int const shared = shared_storage_bytes(recipe, form);
    if (sentence.empty() && shared > device_.gpu.shared_bytes_per_block)
      sentence = fmt::format("needs {} bytes of shared memory per block; {} has {}", shared, device_.gpu.name,
                             device_.gpu.shared_bytes_per_block);
    if (!sentence.empty()) return refuse(sentence);
    PackRecipe packing = packing_;
    packing.by_taps = stores_by_taps(p);
    for (KPartition const& k_partition :
         partitions_worth_trying(recipe, form, device_.gpu, {policy_.partition, !emulated() && is_one()}))
      try_partition(recipe, packing, k_partition, named.is_fitted);
  }

  void try_partition(GemmRecipe recipe, PackRecipe packing, KPartition const& k_partition, bool is_fitted) {
    // The depth of a filter gradient is all pixels. With stream-K, blocks read different pixels at the same
    // time, so the L2 cache does not serve several tiles. Measured: 1.05 to 1.4 times split-K.
    bool const streams = k_partition.partition == Partition::stream_k;
    if (streams && windows_.filter_gradient && !policy_.partition) return;
    // Phases share a launch whenever possible: for 1024 images in f16 on an H200, one launch took 140 and 160
    // us where four took 160 and 187, each with an incomplete last wave. The emulator has no other kernel.
    bool const together =
        together_violation(problem_, windows_, k_partition.partition).empty() && (emulated() || !is_one());
    GemmPolicy& p = recipe.policy;
    double seconds = packing_seconds(problem_, packing, device_.gpu);
    std::size_t flags = 0, partials = 0;
    Volume all;
    p.full_tiles = !emulated();
    for (WindowProduct const& part : windows_.parts) {
      CanonicalGemm const& form = part.product;
      std::string const no = partition_violation(recipe, k_partition, form);
      if (!no.empty()) return refuse(no);
      p.full_tiles =
          p.full_tiles && form.m % (p.block_m * p.cluster_m) == 0 && form.n % (p.block_n * p.cluster_n) == 0;
      divide(recipe, k_partition, form,
             emulated() ? emulator::emulated_resident_blocks : resident_blocks(recipe, form, device_.gpu));
      Volume volume = volume_of(form, recipe);
      volume.operand_bytes = windows_.operand_bytes;  // overlaps of windows are L2 cache hits
      volume.of_windows = true;
      all = {all.tiles + volume.tiles,
             all.steps + volume.tiles * volume.steps,
             std::max(all.longest, volume.longest),
             windows_.operand_bytes,
             all.result_bytes + volume.result_bytes,
             false,
             true};
      if (together) continue;
      seconds += seconds_of_launch(recipe, form, volume);
      flags = std::max(flags, recipe.flag_bytes);  // the launches run consecutively and share them
      partials = std::max(partials, recipe.partial_bytes);
    }
    all.steps /= std::max(1.0, all.tiles);
    if (together) {
      seconds += seconds_of_launch(recipe, front(), all);
      Phases const phases = phases_of(windows_, recipe);
      flags = phases.flag_bytes, partials = phases.partial_bytes;
    }
    recipe.flag_bytes = flags;
    recipe.partial_bytes = partials;
    recipe.predicted_seconds = seconds;
    if (emulated()) p.partition = Partition::split_k;
    ConvolutionRecipe made;
    place_in_workspace(packing, problem_, recipe.flag_bytes + recipe.partial_bytes);
    made.own = packing;
    std::size_t const workspace = packing.end;
    if (std::string no = workspace_violation(workspace, options_.max_workspace); !no.empty())
      return refuse(std::move(no));
    if (!best_.takes(recipe.predicted_seconds, share_of_best(recipe.policy, all.steps, is_fitted))) return;
    made.product = recipe;
    made.stepwise = !windows_.filter_gradient;  // one tap per step
    made.launches = together ? 1 : static_cast<int>(windows_.parts.size());
    std::string text = to_string(recipe) + ", im2col by TMA";
    if (together)
      text += fmt::format(", {} phases in one launch", windows_.parts.size());
    else if (!is_one())
      text += fmt::format(", {} launches", windows_.parts.size());
    std::string const first = packing_text(problem_, packing, device_.gpu);
    if (!first.empty()) text += ", " + first;
    best_.take({{}, workspace, recipe.predicted_seconds, made, std::move(text)});
  }

  // Whether blocks gain by sharing windows: 12 plans of large tiles in tf32 were 0 to 17 % faster on an H200,
  // smaller tiles and 1x1 filters up to 16 % slower (docs/decisions/0016).
  bool worth_sharing(GemmPolicy const& p) const {
    return !windows_.filter_gradient && !has_one_tap(problem_) && p.cluster_m == 1 && p.cluster_n == 2 &&
           p.block_m >= 128 && p.block_n >= 128;
  }
  // The blocks of a cluster that use the same windows.
  int blocks_with_windows(GemmPolicy const& p) const {
    return windows_.image_is_a ? p.cluster_n : p.cluster_m;
  }

  // Whether TMA stores a packed dw to its place.
  bool stores_by_taps(GemmPolicy const& p) const {
    return !emulated() && !stores_by_digits(windows_, p) && stores_by_tma(p, front()) &&
           plan::stores_by_taps(problem_, packing_, tensor_store_of(p, front()).columns);
  }

  // The share of the best offer's predicted time that this one must be below.
  double share_of_best(GemmPolicy const& p, double steps, bool is_fitted) const {
    if (!best_.found()) return 1;
    GemmPolicy const& best = best_.offer().recipe.product.policy;
    // Stream-K must be predicted to be 5 % faster than whole tiles, or their parts.
    bool const streams = p.partition == Partition::stream_k && best.partition != Partition::stream_k;
    // Ping-pong tiles store while they multiply, which counts for more in tiles of few steps (12 data
    // gradients on an H200: docs/decisions/0045).
    bool const waits = is_fitted && best.ping_pong && !p.ping_pong;
    return (streams ? 0.95 : 1) * (waits ? steps < 4 ? 0.85 : 0.95 : 1);
  }

  double seconds_of_launch(GemmRecipe const& recipe, CanonicalGemm const& form, Volume const& volume) const {
    GemmPolicy const& p = recipe.policy;
    // Columns of tiles that are outside the result take time, too, which the model does not count for a
    // single step.
    double const product = predict_seconds(recipe, form, device_.gpu, volume) *
                           (volume.steps <= 1 ? 1 + share_outside(p, form) : 1);
    double const results = windows_.along_m ? volume.result_bytes / bytes_along_m : 0;
    // Ping-pong tiles gain nothing here: on an H100, three first layers with tall_turns took as long as with
    // tall, 1.14 to 1.19 times as long as with tower (docs/decisions/0040).
    double const turns = p.ping_pong && p.block_n < 128 ? 1.2 : 1;
    // Gradients of 1x1 filters took 1.1 to 1.9 times the prediction, median 1.4, on an H200.
    bool const one_tap = has_one_tap(problem_);
    double const slower = windows_.filter_gradient && one_tap ? 1.3 : 1;
    return with_tma(product, tma_seconds(p, volume)) * turns * slower + results;
  }

  // The time that TMA needs for the rows that it unrolls.
  double tma_seconds(GemmPolicy const& p, Volume const& volume) const {
    double const steps = volume.tiles * volume.steps;
    double const rows = steps * (windows_.image_is_a ? p.block_m : p.block_n) / blocks_with_windows(p);
    return unrolling_seconds(rows, clocks_of_image_row(), device_.gpu) +
           unrolling_seconds(steps * more_rows_of_filter(p), clocks_of_filter_row, device_.gpu);
  }

  // The rows of the filter's boxes beyond one per column of the tile: those of 32 columns are half as long,
  // and the last box may end beyond the tile.
  double more_rows_of_filter(GemmPolicy const& p) const {
    if (windows_.filter_gradient || windows_.along_of_b == Along::k) return 0;
    TensorBox const box = tensor_box(Along::mn, size_of(front().b.type), p.block_k, p.block_n, 1);
    return std::max(0, box.rows * box.boxes - p.block_n) / static_cast<double>(p.cluster_m);
  }

  // Measured on an H200, in clocks of a multiprocessor per row of 128 bytes: 4.7; 5.8 if windows overlap in
  // memory; 9 if rows also begin within sectors. Rows of 64 bytes: 1.9 to 3.1, and 7.6 if they begin within
  // sectors (72 channels in 16 bits). Rows of 32 bytes: 1.6 for each row of windows and filter, hence 2.3 if
  // those of the filter are not counted.
  double clocks_of_image_row() const {
    bool const overlap = packing_.rows > 0;
    Index const step = overlap ? packing_.place * problem_.stride[1] : windows_.parts.front().image.stride[1];
    bool const whole_sectors = step * size_of(problem_.x.type) % sector_bytes == 0;
    if (overlap) return whole_sectors ? 5.8 : 9;
    if (windows_.row_bytes == step_bytes) return whole_sectors ? clocks_of_row : 9;
    return windows_.row_bytes < 64 ? 2.3 : whole_sectors ? 2.2 : 7.6;
  }

  void refuse(std::string sentence) { best_.refuse(std::move(sentence)); }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  PolicyRequest policy_;  // without the main loop
  WindowProducts const& windows_;
  PackRecipe const& packing_;
  BestOffer<Problem> best_;
};

// The requested bytes of a step, if a step may have them; other requests are refused with the policy.
std::optional<int> requested_row_bytes(Problem const& problem, PolicyRequest const& policy) {
  DataType const type = problem.direction == ConvolutionDirection::data ? problem.y.type : problem.x.type;
  if (!policy.block_k) return {};
  int const bytes = *policy.block_k * size_of(type);
  return bytes == 32 || bytes == 64 ? bytes : step_bytes;
}

// The bytes of a step that are tried: those requested or else as many as channels fill, and half of them if a
// tap's last step would be at most half full.
std::vector<int> steps_to_try(Problem const& problem, PackRecipe const& packing, Device const& device,
                              PolicyRequest const& policy) {
  if (std::optional<int> const requested = requested_row_bytes(problem, policy)) return {*requested};
  bool const emulated = device.backend == Backend::emulator;
  int const bytes = bytes_of_step(problem, packing, emulated);
  TensorDescription const& image = problem.direction == ConvolutionDirection::data ? problem.y : problem.x;
  Index const of_tap = image.extent(1) * size_of(image.type), rest = of_tap % step_bytes;
  if (emulated || is_filter(problem) || packing.rows > 0 || size_of(image.type) != 2 || of_tap < step_bytes ||
      rest == 0 || rest > step_bytes / 2)
    return {bytes};
  return {bytes, step_bytes / 2};
}

Offer<Problem> offer_with(Problem const& problem, Device const& device, PlanOptions const& options,
                          PackRecipe const& packing, int row_bytes) {
  Offer<Problem> offer;
  WindowProducts const windows = window_products(problem, device.gpu, packing, row_bytes);
  offer.refusal = windows.refusal;
  if (offer.refusal.empty()) offer.refusal = packing_violation(problem, packing);
  if (!offer.refusal.empty()) return offer;
  CanonicalGemm const& front = windows.parts.front().product;
  if (device.backend == Backend::emulator && !emulator::has_window_product(front.a.type, front.b.type)) {
    offer.refusal = fmt::format("the emulator has this kernel for f16, tf32 and s8, not for {} and {}",
                                name_of(front.a.type), name_of(front.b.type));
    return offer;
  }
  return WindowSearch(problem, device, options, windows, packing).best();
}

}  // namespace

std::string elements_violation(Problem const& problem) {
  for (TensorDescription const* tensor : {&problem.x, &problem.w, &problem.y})
    if (tensor->layout.size() == 0)
      return fmt::format("{} has no elements; TMA requires at least one", to_string(*tensor));
  return {};
}

double unrolling_seconds(double rows, double clocks, Gpu const& gpu) {
  return rows * clocks / (gpu.multiprocessors * gpu.clock_hertz);
}
double with_tma(double product, double engine) {
  return std::max(product, engine) + 0.15 * std::min(product, engine);
}

Offer<Problem> warp_specialized_convolution(Problem const& problem, Device const& device,
                                            PlanOptions const& options) {
  Offer<Problem> best;
  best.refusal = problem_violation(problem, device.backend);
  if (best.refusal.empty()) best.refusal = extent_violation(forms_of(problem));
  if (best.refusal.empty()) best.refusal = elements_violation(problem);
  if (!best.refusal.empty()) return best;
  // Candidates: the operands in place, of filter gradients also with padded channels; if TMA cannot read one,
  // with that operand packed; for filter gradients in tf32, of which wgmma reads only one operand in place,
  // with dy transposed; and with image rows packed together.
  std::vector<PackRecipe> packings{{}, {.other = true}};
  bool const gradient = is_filter(problem);
  if (gradient) packings.insert(packings.end(), {{.pads = true}, {.other = true, .pads = true}});
  packings.insert(packings.end(), {{.image = true}, {.image = true, .other = true}});
  if (gradient)
    packings.insert(
        packings.end(),
        {{.transposes = true}, {.pads = true, .transposes = true}, {.image = true, .transposes = true}});
  std::size_t const plain = packings.size();
  bool const transposes = gradient && size_of(problem.x.type) == 4;
  for (PackRecipe packing : packings_of_rows(problem)) {
    packing.transposes = transposes;
    packings.push_back(packing);
    if (transposes) continue;
    if (packing.other) continue;
    packing.other = true;  // dy, if TMA cannot read it in place
    packings.push_back(packing);
  }
  bool taken = false, is_first = true;
  for (std::size_t i = 0; i < packings.size(); ++i) {
    if (taken && i < plain) continue;
    for (int const row_bytes : steps_to_try(problem, packings[i], device, options.policy)) {
      Offer<Problem> offer = offer_with(problem, device, options, packings[i], row_bytes);
      taken = taken || offer.refusal.empty();
      bool const replaces =
          std::exchange(is_first, false) || (!best.refusal.empty() && offer.refusal.empty());
      if (replaces || (offer.refusal.empty() && offer.predicted_seconds < best.predicted_seconds))
        best = std::move(offer);
    }
  }
  return best;
}

}  // namespace cosmati::plan
