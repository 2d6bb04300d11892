// Which phases can share a tile, and the prediction.
#include "src/plan/conv/windows/merged_phases.h"
#include "src/plan/buffers.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/best_offer.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/windows/packing.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// A phase along one axis: its taps, and the position in dy of the first tap of its first pixel.
struct AxisPhase {
  Index taps;
  int origin;
};
// `digit` is one of k: 0 for rows and 1 for columns.
AxisPhase axis_phase(WindowProduct const& part, std::size_t digit) {
  WindowArguments const& window = part.form.image().arguments;
  return {part.form.k[digit].extent, digit == 0 ? window.top : window.left};
}

// Sets `axis` for two phases, of which `larger` has the most taps; returns whether their taps coincide.
bool set_axis(MergedAxis& axis, AxisPhase const& larger, AxisPhase const& smaller) {
  axis.shared = static_cast<int>(smaller.taps);
  axis.first_shared = larger.origin - smaller.origin;
  axis.single = static_cast<int>(larger.taps - smaller.taps);
  return axis.shared > 0 && axis.first_shared >= 0 && axis.first_shared <= axis.single;
}

std::string policy_violation_of_phases(GemmPolicy const& p, int element_bytes) {
  if (p.warp_m != 16 || p.block_n != p.warp_n || p.warp_n > 64 || p.cluster() != 1 || p.ping_pong ||
      p.partition != Partition::tiles)
    return "the tile of each phase has warp_m = 16 and block_n = warp_n of at most 64, is not divided along k "
           "and does not alternate, and there are no clusters";
  if (int const bytes = p.block_n * p.block_k * element_bytes; bytes % 1024 != 0)
    return fmt::format(
        "block_n = {} and block_k = {}: {} bytes of filters in a step; expected a multiple of 1024",
        p.block_n, p.block_k, bytes);
  return {};
}

// The reason why the phases of this problem cannot share a tile, whatever its layouts.
std::string problem_violation_of_phases(Problem const& p) {
  if (p.direction != ConvolutionDirection::data)
    return "computes only data gradients, whose phases share windows of dy";
  if (p.stride[0] != 2 || p.stride[1] != 2 || p.dilation[0] != 1 || p.dilation[1] != 1)
    return fmt::format(
        "stride {}x{} with dilation {}x{}; expected 2x2 with 1x1, whose four phases share taps", p.stride[0],
        p.stride[1], p.dilation[0], p.dilation[1]);
  if (p.x.extent(2) % 2 != 0 || p.x.extent(3) % 2 != 0)
    return fmt::format("dx of {}x{} pixels; expected even extents, for phases of the same size",
                       p.x.extent(2), p.x.extent(3));
  if (p.w.extent(2) < 2 || p.w.extent(3) < 2)
    return fmt::format("a {}x{} filter leaves phases without taps; expected at least 2x2", p.w.extent(2),
                       p.w.extent(3));
  return {};
}

class Search {
 public:
  Search(Problem const& problem, Device const& device, PlanOptions const& options,
         WindowProducts const& windows, PackRecipe const& packing, MergedForm const& form)
      : problem_(problem),
        device_(device),
        options_(options),
        windows_(windows),
        packing_(packing),
        form_(form) {}

  Offer<Problem> best() {
    int const size = size_of(phase().a.type);
    std::vector<NamedPolicy> policies = phase_policies(size);
    PolicyRequest request = options_.policy;
    if (request.main_loop.value_or(MainLoop::warp_specialized) != MainLoop::warp_specialized ||
        request.tile || request.extent || request.operands)
      return refused("has one main loop, warp_specialized; --policy " + request.text + " was requested");
    request.main_loop.reset();
    if (emulated()) {
      policies = {{"emulated", emulator::emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, size,
                                                         Partition::tiles)}};
    }
    if (std::string foreign = foreign_policy(request, policies); !emulated() && !foreign.empty())
      return refused(std::move(foreign));
    if (!request.empty()) {
      GemmPolicy const own = policies.front().policy;
      policies = {requested_policy(request, policies, policies.front())};
      if (emulated() && !(policies.front().policy == own))
        return refused("--policy " + request.text +
                       ": the emulator has one policy for each kernel and type: emulated");
    }
    for (NamedPolicy const& named : policies) try_policy(named);
    return std::move(best_).result();
  }

 private:
  bool emulated() const { return device_.backend == Backend::emulator; }
  CanonicalGemm const& phase() const { return windows_.parts[form_.part[largest_phase]].product; }
  static Offer<Problem> refused(std::string sentence) {
    Offer<Problem> offer;
    offer.refusal = std::move(sentence);
    return offer;
  }

  void try_policy(NamedPolicy const& named) {
    CanonicalGemm const& form = phase();
    GemmRecipe recipe;
    recipe.policy_name = named.name;
    recipe.policy = named.policy;
    recipe.a = {windows_.along_of_a, 16 / size_of(form.a.type)};
    recipe.b = {windows_.along_of_b, 16 / size_of(form.b.type)};
    recipe.result_width = form.d.width;
    recipe.sum = form.sum;
    GemmPolicy& p = recipe.policy;
    p.full_tiles = !emulated() && form.m % p.block_m == 0 && form.n % p.block_n == 0;
    if (!emulated() && !options_.policy.epilogue) {
      p.epilogue = epilogue_schedule(problem_.epilogue.expression);
      if (!stores_by_tma(p, form)) p.epilogue = EpilogueSchedule::staged;
    }
    if (stores_by_digits(windows_, p)) p.epilogue = EpilogueSchedule::staged;
    std::string sentence = policy_violation(p, form.a.type, form.b.type, form.sum);
    if (sentence.empty()) sentence = policy_violation_of_phases(p, size_of(form.a.type));
    if (sentence.empty()) sentence = columns_violation(p, recipe.b.along, size_of(form.b.type));
    // The filters of a phase end where those of the next one begin.
    if (sentence.empty() && recipe.b.along == Along::mn) sentence = boxes_violation(p, size_of(form.b.type));
    int const shared = merged_shared_bytes(p, form);
    if (sentence.empty() && shared > device_.gpu.shared_bytes_per_block)
      sentence = fmt::format("needs {} bytes of shared memory per block; {} has {}", shared, device_.gpu.name,
                             device_.gpu.shared_bytes_per_block);
    if (!sentence.empty()) return best_.refuse(sentence);
    recipe.predicted_seconds = packing_seconds(problem_, packing_, device_.gpu) + predicted(recipe);
    ConvolutionRecipe made;
    made.algorithm = ConvolutionAlgorithm::dgrad_phases;
    PackRecipe& packing = made.own.emplace<PackRecipe>(packing_);
    place_in_workspace(packing, problem_, 0);
    if (std::string no = workspace_violation(packing.end, options_.max_workspace); !no.empty())
      return best_.refuse(std::move(no));
    if (!best_.takes(recipe.predicted_seconds)) return;
    made.product = recipe;
    made.stepwise = true;
    std::string text = to_string(recipe) + ", im2col by TMA, four phases in each tile";
    std::string const first = packing_text(problem_, packing_, device_.gpu);
    if (!first.empty()) text += ", " + first;
    best_.take({{}, packing.end, recipe.predicted_seconds, made, std::move(text)});
  }

  // Predicted as a product with the columns of all phases: its steps are weighted by the share of columns
  // that they multiply, and TMA unrolls a window for each step.
  double predicted(GemmRecipe recipe) const {
    GemmPolicy& p = recipe.policy;
    CanonicalGemm form = phase();
    auto const taps = [this](int kind) { return taps_of(tap_kind(kind), form_.rows, form_.columns); };
    Index const steps_of_tap = form.k / (taps(0) + taps(1) + taps(2) + taps(3)) / p.block_k;
    form.n = (form.n + p.block_n - 1) / p.block_n * p.block_n * merged_phases;
    p.block_n *= merged_phases, p.warp_n *= merged_phases, p.thread_n *= merged_phases;
    Volume volume = volume_of(form, recipe);
    double const windows = volume.tiles * volume.steps;
    volume.steps = 0;
    for (int kind = 0; kind < tap_kinds; ++kind)
      volume.steps +=
          static_cast<double>(taps(kind) * steps_of_tap) * tap_kind(kind).phases() / merged_phases;
    volume.longest = volume.steps;
    volume.operand_bytes = windows_.operand_bytes;
    volume.of_windows = true;
    double const product = predict_seconds(recipe, form, device_.gpu, volume);
    return with_tma(product, unrolling_seconds(windows * p.block_m, clocks_of_row, device_.gpu));
  }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  WindowProducts const& windows_;
  PackRecipe const& packing_;
  MergedForm const& form_;
  BestOffer<Problem> best_;
};

}  // namespace

MergedForm merged_form(WindowProducts const& windows) {
  MergedForm made;
  auto const refuse = [&made](std::string sentence) {
    made.refusal = std::move(sentence);
    return made;
  };
  auto const& parts = windows.parts;
  if (parts.size() != merged_phases) return refuse("dx does not have four phases");
  if (windows.along_m) return refuse("the pixels of dx are contiguous; expected channels last (NHWC)");
  // Part 2 i + j: rows i, i + 2, ... of columns j, j + 2, ...
  std::size_t const row = axis_phase(parts[0], 0).taps >= axis_phase(parts[2], 0).taps ? 0 : 1;
  std::size_t const column = axis_phase(parts[0], 1).taps >= axis_phase(parts[1], 1).taps ? 0 : 1;
  bool const nested =
      set_axis(made.rows, axis_phase(parts[2 * row], 0), axis_phase(parts[2 * (1 - row)], 0)) &&
      set_axis(made.columns, axis_phase(parts[column], 1), axis_phase(parts[1 - column], 1));
  if (!nested) return refuse("a phase has taps at windows of dy that the largest phase does not have");
  for (int p = 0; p < merged_phases; ++p)
    made.part[static_cast<std::size_t>(p)] =
        2 * (has_larger_rows(p) ? row : 1 - row) + (has_larger_columns(p) ? column : 1 - column);
  if (is_float8(parts[0].product.a.type) || parts[0].product.sum != DataType::f32)
    return refuse(fmt::format("multiplies f16, bf16 and tf32 with sums in f32, not {}",
                              name_of(parts[0].product.a.type)));
  return made;
}

int merged_shared_bytes(GemmPolicy const& p, CanonicalGemm const& phase) {
  int const tile = (p.block_k * size_of(phase.a.type) * p.block_n + 1023) / 1024 * 1024;
  return warp_specialized_shared_bytes(p, phase) + p.stages * (merged_phases - 1) * tile;
}

Offer<Problem> dgrad_phases(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (offer.refusal.empty()) offer.refusal = problem_violation_of_phases(problem);
  if (offer.refusal.empty()) offer.refusal = extent_violation(forms_of(problem));
  if (offer.refusal.empty()) offer.refusal = elements_violation(problem);
  if (!offer.refusal.empty()) return offer;
  // Tries the operands in place or, if TMA cannot read one, with that operand packed.
  for (PackRecipe const& packing : {PackRecipe{}, PackRecipe{.other = true}, PackRecipe{.image = true},
                                    PackRecipe{.image = true, .other = true}}) {
    WindowProducts const windows = window_products(problem, device.gpu, packing);
    std::string refusal = windows.refusal;
    if (refusal.empty()) refusal = packing_violation(problem, packing);
    if (refusal.empty()) {
      MergedForm const form = merged_form(windows);
      if (!form.refusal.empty()) {
        offer.refusal = form.refusal;
        return offer;
      }
      CanonicalGemm const& front = windows.parts.front().product;
      if (device.backend == Backend::emulator && !emulator::has_window_product(front.a.type, front.b.type)) {
        offer.refusal = fmt::format("the emulator has this kernel for f16 and tf32, not for {} and {}",
                                    name_of(front.a.type), name_of(front.b.type));
        return offer;
      }
      return Search(problem, device, options, windows, packing, form).best();
    }
    if (offer.refusal.empty()) offer.refusal = std::move(refusal);
  }
  return offer;
}

}  // namespace cosmati::plan
