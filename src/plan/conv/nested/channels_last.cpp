// Plans and runs copies of a convolution's operands, and the convolution that reads them.
#include "src/plan/conv/nested/channels_last.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/form.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/integers.h"
#include "src/plan/primitive/transpose.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int promised_alignment = 64;  // of the workspace itself
constexpr int run_bytes = 16;

struct Copy {
  TensorDescription Problem::*tensor;
  TransformProblem transform;         // into the workspace or, for the result, out of it
  std::size_t offset = 0, bytes = 0;  // in the workspace
  bool is_result = false;

  TensorDescription const& own() const { return is_result ? transform.x : transform.y; }
};

// The operand that is read in windows comes first. The filter of a data gradient is read along its output
// channels, which implicit_gemm arranges itself.
std::vector<TensorDescription Problem::*> operands_of(Problem const& p) {
  switch (p.direction) {
    case ConvolutionDirection::forward: return {&Problem::x, &Problem::w};
    case ConvolutionDirection::filter: return {&Problem::x, &Problem::y};
    default: return {&Problem::y};
  }
}

TensorDescription Problem::*result_of(Problem const& p) {
  return p.direction == ConvolutionDirection::forward ? &Problem::y
         : p.direction == ConvolutionDirection::data  ? &Problem::x
                                                      : &Problem::w;
}

bool is_strided(TensorDescription const& tensor) {
  return tensor.extent(1) > 1 && tensor.layout.stride[1] != 1;
}

bool fills_runs(TensorDescription const& tensor) {
  return tensor.extent(1) * size_of(tensor.type) % run_bytes == 0;
}

// Whether copies have gaps between pixels, so that TMA reads any number of channels: filter gradients in 16
// bits by wgmma, whose kernels read both operands in place.
bool pads_pixels(Problem const& p, Gpu const& gpu) {
  return p.direction == ConvolutionDirection::filter && p.groups == 1 && features_of(gpu).wgmma &&
         size_of(p.x.type) == 2 && p.w.extent(2) * p.w.extent(3) > 1;
}

// Whether x has so few 16-bit channels that kernels read or write them in any layout, as they do those of the
// filter; the other image is then the only copy.
bool has_few_channels(Problem const& p) {
  constexpr Index most = 7;
  DataType const factor = p.direction == ConvolutionDirection::data ? p.y.type : p.x.type;
  return p.groups == 1 && size_of(factor) == 2 && p.x.extent(1) <= most && !fills_runs(p.x) &&
         p.x.extent(1) < p.y.extent(1);
}

// wgmma computes a product faster than its epilogue stores single channels, so the result is copied, too.
// With the staged epilogue of mma.sync, another pass does not pay off.
std::vector<Copy> copies_of(Problem const& p, Gpu const& gpu) {
  std::vector<Copy> copies;
  std::size_t end = 0;
  auto const add = [&](TensorDescription Problem::*tensor, bool is_result) {
    TensorDescription const& outside = p.*tensor;
    bool const pads = pads_pixels(p, gpu) && !is_result;
    if (!is_strided(outside) && (!pads || pixels_begin_at(outside, run_bytes))) return;
    TensorDescription inside = outside;
    Index const unit = pads ? run_bytes / size_of(outside.type) : 1;
    inside.layout =
        image_layout(TensorFormat::nhwc, outside.extent(0), ceiling_divide(outside.extent(1), unit) * unit,
                     outside.extent(2), outside.extent(3));
    inside.layout.shape = outside.layout.shape;
    inside.alignment = promised_alignment;
    auto const bytes = static_cast<std::size_t>(inside.bytes());
    copies.push_back({tensor,
                      is_result ? TransformProblem{inside, outside} : TransformProblem{outside, inside}, end,
                      bytes, is_result});
    end += padded_bytes(bytes);
  };
  if (has_few_channels(p)) {
    add(&Problem::y, p.direction == ConvolutionDirection::forward);
    return copies;
  }
  for (auto const tensor : operands_of(p)) add(tensor, false);
  auto const result = result_of(p);
  if (!copies.empty() && features_of(gpu).wgmma && fills_runs(p.*result)) add(result, true);
  return copies;
}

std::size_t bytes_of(std::vector<Copy> const& copies) {
  return copies.empty() ? 0 : copies.back().offset + padded_bytes(copies.back().bytes);
}

Problem copied_problem(Problem problem, std::vector<Copy> const& copies) {
  for (Copy const& copy : copies) problem.*copy.tensor = copy.own();
  problem.db = {};
  return problem;
}

// The options for planning the convolution that reads the copies.
PlanOptions options_of(Plan<Problem> const& plan, std::vector<Copy> const& copies) {
  return options_within(plan.workspace_bytes - plan.recipe.bias_bytes - bytes_of(copies),
                        std::get<SlicesRecipe>(plan.recipe.own).max_error, plan.batch_invariant);
}

// Copies preserve all bits for any number of images, so they need not be batch-invariant.
PlanOptions of_copies(PlanOptions options) {
  options.batch_invariant = false;
  return options;
}

// Measured on an H200 (docs/decisions/0022), where a result stays in L2 if there is room: at the bandwidth of
// a copy, or a third of that if elements are moved one by one. Channels that do not fill units of 16 bytes
// are assumed to be as slow.
double seconds_of(Copy const& copy, Gpu const& gpu) {
  constexpr double launch_seconds = 1.8e-6;
  TensorDescription const &tensor = copy.own(),
                          &outside = copy.is_result ? copy.transform.y : copy.transform.x;
  Index const plane = tensor.extent(2) * tensor.extent(3);
  int const size = size_of(tensor.type);
  bool const by_planes = outside.layout.stride[1] == plane && keeps_planes(plane, size, gpu);
  bool const in_runs = fills_runs(tensor) && (plane * size % 4 == 0 || by_planes);
  double const share_of_memory = in_runs ? 0.8 : 0.25;
  return launch_seconds +
         2.0 * static_cast<double>(copy.bytes) / (share_of_memory * gpu.memory_bytes_per_second);
}

std::string violation(Problem const& p, Device const& device, PlanOptions const& options,
                      std::vector<Copy> const& copies) {
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  if (std::string sentence = options.policy.refusal(); !sentence.empty()) return sentence;
  if (copies.empty()) return "the channels of its operands are already contiguous";
  if (features_of(device.gpu).wgmma && options.batch_invariant)
    return "with wgmma, batch-invariant plans read the operands as they are";
  bool const few = has_few_channels(p), pads = pads_pixels(p, device.gpu);
  if (TensorDescription const& copied = few ? p.y : p.result();
      (few ? !pads : features_of(device.gpu).wgmma) && is_strided(copied) && !fills_runs(copied))
    return fmt::format("{} channels of {} do not fill units of {} bytes", copied.extent(1),
                       few ? "y" : "the result", run_bytes);
  TensorDescription const& image = p.*operands_of(p).front();
  TensorDescription const& other = p.direction == ConvolutionDirection::filter ? p.y : p.w;
  if (!mma_takes(image.type, other.type, accumulator_type(image.type, other.type)))
    return fmt::format("tensor cores do not multiply {} by {}", name_of(image.type), name_of(other.type));
  if (std::string sentence = mma_device_violation(image.type, device.gpu); !sentence.empty()) return sentence;
  for (auto const tensor : operands_of(p)) {
    if (few || pads) break;
    Index const channels = (p.*tensor).extent(1) / (tensor == &Problem::w ? 1 : p.groups);
    if (channels == 0 || channels * size_of((p.*tensor).type) % run_bytes != 0)
      return fmt::format("{} channels of {} per group do not fill runs of {} bytes", channels,
                         name_of((p.*tensor).type), run_bytes);
  }
  return workspace_violation(bytes_of(copies), options.max_workspace);
}

class ChannelsLast final : public Kernel<Problem> {
 public:
  explicit ChannelsLast(Plan<Problem> const& plan)
      : copies_(copies_of(plan.problem, plan.device.gpu)),
        convolution_(cosmati::prepare(plan_of_copied(plan))) {
    for (Plan<TransformProblem> const& copy : plans_of_copies(plan))
      transforms_.push_back(cosmati::prepare(copy));
  }

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    Problem::Arguments copied = arguments;
    std::byte* const own = workspace + bytes_of(copies_);
    void* result = nullptr;
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      std::byte* const inside = workspace + copies_[i].offset;
      if (copies_[i].is_result) {
        result = std::exchange(result_of(copied, copies_[i]), inside);
        continue;
      }
      void const*& tensor = argument_of(copied, copies_[i]);
      transforms_[i].run({.x = tensor, .y = inside}, own, stream);
      tensor = inside;
    }
    convolution_.run(copied, own, stream);
    if (result != nullptr)  // the last copy
      transforms_.back().run({.x = workspace + copies_.back().offset, .y = result}, own, stream);
  }

 private:
  static void const*& argument_of(Problem::Arguments& all, Copy const& copy) {
    return copy.tensor == &Problem::x ? all.x : copy.tensor == &Problem::w ? all.w : all.dy;
  }
  static void*& result_of(Problem::Arguments& all, Copy const& copy) {
    return copy.tensor == &Problem::x ? all.dx : copy.tensor == &Problem::w ? all.dw : all.y;
  }

  std::vector<Copy> copies_;
  std::vector<Prepared<TransformProblem>> transforms_;
  Prepared<Problem> convolution_;
};

}  // namespace

Plan<Problem> plan_of_copied(Plan<Problem> const& plan) {
  std::vector<Copy> const copies = copies_of(plan.problem, plan.device.gpu);
  return make_plan(copied_problem(plan.problem, copies), plan.device, options_of(plan, copies));
}

std::vector<Plan<TransformProblem>> plans_of_copies(Plan<Problem> const& plan) {
  std::vector<Copy> const copies = copies_of(plan.problem, plan.device.gpu);
  std::vector<Plan<TransformProblem>> plans;
  for (Copy const& copy : copies)
    plans.push_back(make_plan(copy.transform, plan.device, of_copies(options_of(plan, copies))));
  return plans;
}

std::unique_ptr<Kernel<Problem>> prepare_channels_last(Plan<Problem> const& plan) {
  return std::make_unique<ChannelsLast>(plan);
}

Offer<Problem> channels_last(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  std::vector<Copy> const copies = copies_of(problem, device.gpu);
  offer.refusal = violation(problem, device, options, copies);
  if (!offer.refusal.empty()) return offer;
  PlanOptions const left =
      options_within(options.max_workspace - bytes_of(copies), options.max_error, options.batch_invariant);
  offer.refusal = refusal_of_inner(left.max_workspace, [&] {
    auto const convolution = make_plan(copied_problem(problem, copies), device, left);
    std::size_t own = convolution.workspace_bytes;
    double seconds = 0;
    std::string names;
    for (Copy const& copy : copies) {
      own = std::max(own, make_plan(copy.transform, device, of_copies(left)).workspace_bytes);
      seconds += seconds_of(copy, device.gpu);
      names += names.empty() ? "" : " and ";
      names += copy.is_result               ? "the result"
               : copy.tensor == &Problem::x ? "x"
               : copy.tensor == &Problem::w ? "w"
                                            : "dy";
    }
    offer.recipe.algorithm = ConvolutionAlgorithm::channels_last;
    offer.recipe.own = SlicesRecipe{0, options.max_error};
    offer.workspace_bytes = bytes_of(copies) + padded_bytes(own);
    bool const pads =
        std::any_of(copies.begin(), copies.end(), [](Copy const& copy) { return !fills_runs(copy.own()); });
    offer.text = fmt::format("{} copied with channels last{}, {} bytes in {:.1f} us", names,
                             pads ? " and padded pixels" : "", bytes_of(copies), seconds * 1e6);
    Considered const& chosen = convolution.chosen();
    offer.predicted_seconds = seconds + chosen.predicted_seconds;
    offer.expected_error = chosen.expected_error;
    offer.text += fmt::format(", then {}: {}", convolution.kernel, chosen.recipe);
  });
  return offer;
}

}  // namespace cosmati::plan
