// Plans and runs copies of a convolution's operands, and the convolution that reads them.
#include "src/plan/conv/nested/channels_last.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/nested/inner_plans.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr char const* own_name = "channels_last";
constexpr int promised_alignment = 64;  // of the workspace itself
constexpr int run_bytes = 16;

struct Copy {
  TensorDescription Problem::*tensor;
  TransformProblem transform;
  std::size_t offset = 0, bytes = 0;  // in the workspace
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

bool is_strided(TensorDescription const& tensor) {
  return tensor.extent(1) > 1 && tensor.layout.stride[1] != 1;
}

std::vector<Copy> copies_of(Problem const& p) {
  std::vector<Copy> copies;
  std::size_t end = 0;
  for (auto const tensor : operands_of(p)) {
    TensorDescription const& from = p.*tensor;
    if (!is_strided(from)) continue;
    TensorDescription to = from;
    to.layout =
        image_layout(TensorFormat::nhwc, from.extent(0), from.extent(1), from.extent(2), from.extent(3));
    to.alignment = promised_alignment;
    auto const bytes = static_cast<std::size_t>(to.bytes());
    copies.push_back({tensor, {from, to}, end, bytes});
    end += padded_bytes(bytes);
  }
  return copies;
}

std::size_t bytes_of(std::vector<Copy> const& copies) {
  return copies.empty() ? 0 : copies.back().offset + padded_bytes(copies.back().bytes);
}

Problem copied_problem(Problem problem, std::vector<Copy> const& copies) {
  for (Copy const& copy : copies) problem.*copy.tensor = copy.transform.y;
  problem.db = {};
  return problem;
}

// The options for planning the convolution that reads the copies.
PlanOptions options_of(Plan<Problem> const& plan, std::vector<Copy> const& copies) {
  return options_within(plan.workspace_bytes - plan.recipe.bias_bytes - bytes_of(copies),
                        std::get<SlicesRecipe>(plan.recipe.own).max_error, plan.batch_invariant);
}

// Measured on an H200 at 0.95 of the bandwidth of a copy of this size (docs/decisions/0022).
double seconds_of(Copy const& copy, Gpu const& gpu) {
  constexpr double launch_seconds = 2.5e-6, share_of_memory = 0.75;
  return launch_seconds +
         2.0 * static_cast<double>(copy.bytes) / (share_of_memory * gpu.memory_bytes_per_second);
}

std::string violation(Problem const& p, Device const& device, PlanOptions const& options,
                      std::vector<Copy> const& copies) {
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  if (std::string sentence = options.policy.refusal(); !sentence.empty()) return sentence;
  if (copies.empty()) return "the channels of its operands are already contiguous";
  TensorDescription const& image = p.*operands_of(p).front();
  TensorDescription const& other = p.direction == ConvolutionDirection::filter ? p.y : p.w;
  bool const requested = options.kernel == own_name;
  if (!requested && features_of(device.gpu).wgmma)
    return "warp_specialized packs its operands itself on " + device.gpu.name;
  if (!mma_takes(image.type, other.type, accumulator_type(image.type, other.type)))
    return fmt::format("tensor cores do not multiply {} by {}", name_of(image.type), name_of(other.type));
  if (std::string sentence = mma_device_violation(image.type, device.gpu); !sentence.empty()) return sentence;
  for (auto const tensor : operands_of(p)) {
    Index const channels = (p.*tensor).extent(1) / (tensor == &Problem::w ? 1 : p.groups);
    if (channels == 0 || channels * size_of((p.*tensor).type) % run_bytes != 0)
      return fmt::format("{} channels of {} per group do not fill runs of {} bytes", channels,
                         name_of((p.*tensor).type), run_bytes);
  }
  if (bytes_of(copies) > options.max_workspace)
    return fmt::format("needs {} bytes of workspace; at most {}", bytes_of(copies), options.max_workspace);
  return {};
}

class ChannelsLast final : public Kernel<Problem> {
 public:
  explicit ChannelsLast(Plan<Problem> const& plan)
      : copies_(copies_of(plan.problem)), convolution_(cosmati::prepare(plan_of_copied(plan))) {
    for (Plan<TransformProblem> const& copy : plans_of_copies(plan))
      transforms_.push_back(cosmati::prepare(copy));
  }

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    Problem::Arguments copied = arguments;
    std::byte* const own = workspace + bytes_of(copies_);
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      void const*& tensor = argument_of(copied, copies_[i]);
      std::byte* const to = workspace + copies_[i].offset;
      transforms_[i].run({.x = tensor, .y = to}, own, stream);
      tensor = to;
    }
    convolution_.run(copied, own, stream);
  }

 private:
  static void const*& argument_of(Problem::Arguments& all, Copy const& copy) {
    return copy.tensor == &Problem::x ? all.x : copy.tensor == &Problem::w ? all.w : all.dy;
  }

  std::vector<Copy> copies_;
  std::vector<Prepared<TransformProblem>> transforms_;
  Prepared<Problem> convolution_;
};

}  // namespace

Plan<Problem> plan_of_copied(Plan<Problem> const& plan) {
  std::vector<Copy> const copies = copies_of(plan.problem);
  return make_plan(copied_problem(plan.problem, copies), plan.device, options_of(plan, copies));
}

std::vector<Plan<TransformProblem>> plans_of_copies(Plan<Problem> const& plan) {
  std::vector<Copy> const copies = copies_of(plan.problem);
  std::vector<Plan<TransformProblem>> plans;
  for (Copy const& copy : copies)
    plans.push_back(make_plan(copy.transform, plan.device, options_of(plan, copies)));
  return plans;
}

std::unique_ptr<Kernel<Problem>> prepare_channels_last(Plan<Problem> const& plan) {
  return std::make_unique<ChannelsLast>(plan);
}

Offer<Problem> channels_last(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  std::vector<Copy> const copies = copies_of(problem);
  offer.refusal = violation(problem, device, options, copies);
  if (!offer.refusal.empty()) return offer;
  PlanOptions const left =
      options_within(options.max_workspace - bytes_of(copies), options.max_error, options.batch_invariant);
  auto const convolution = make_plan(copied_problem(problem, copies), device, left);
  std::size_t own = convolution.workspace_bytes;
  double seconds = 0;
  std::string names;
  for (Copy const& copy : copies) {
    own = std::max(own, make_plan(copy.transform, device, left).workspace_bytes);
    seconds += seconds_of(copy, device.gpu);
    names += names.empty() ? "" : " and ";
    names += copy.tensor == &Problem::x ? "x" : copy.tensor == &Problem::w ? "w" : "dy";
  }
  offer.recipe.algorithm = ConvolutionAlgorithm::channels_last;
  offer.recipe.own = SlicesRecipe{0, options.max_error};
  offer.workspace_bytes = bytes_of(copies) + padded_bytes(own);
  offer.text = fmt::format("{} copied with channels last, {} bytes in {:.1f} us", names, bytes_of(copies),
                           seconds * 1e6);
  for (Considered const& entry : convolution.considered)
    if (entry.kernel == convolution.kernel) {
      offer.predicted_seconds = seconds + entry.predicted_seconds;
      offer.expected_error = entry.expected_error;
      offer.text += fmt::format(", then {}: {}", convolution.kernel, entry.recipe);
    }
  return offer;
}

}  // namespace cosmati::plan
