// Which convolutions group_windows supports, its shape, the predicted time, and its program.
#include "src/plan/conv/grouped/group_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/ops/architecture.h"
#include "src/plan/best_offer.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/conv/grouped/grouped.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/windows/line_boxes.h"
#include "src/plan/gemm/program/tensor_maps.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int max_product_columns = 128;  // of all groups of a block

bool is_data(Problem const& p) { return p.direction == ConvolutionDirection::data; }

std::string group_windows_violation(Problem const& p, Device const& device, PlanOptions const& options) {
  if (std::string sentence = options.policy.refusal(); !sentence.empty()) return sentence;
  if (p.direction == ConvolutionDirection::filter) return "does not compute filter gradients";
  if (std::string sentence = wgmma_device_violation(device.gpu); !sentence.empty()) return sentence;
  if (std::string sentence = grouped_violation(p, device, false); !sentence.empty()) return sentence;
  GroupedRoles const roles = grouped_roles(p);
  if (roles.inputs % 16 != 0 || roles.outputs % 8 != 0)
    return fmt::format(
        "groups of {} summed channels and {} of the result; supported: multiples of 16 and of 8",
        roles.inputs, roles.outputs);
  for (int i : {0, 1}) {
    if (is_data(p) && p.stride[i] != 1)
      return fmt::format("a data gradient with a stride of {}; supported: 1", p.stride[i]);
    if (p.stride[i] > 2) return fmt::format("a stride of {}; supported: 1 and 2", p.stride[i]);
    if (p.dilation[i] > 16) return fmt::format("a dilation of {}; supported: at most 16", p.dilation[i]);
    if (p.w.extent(2 + i) > max_box)
      return fmt::format("filters of {}x{} taps; TMA copies at most {} along an axis", p.w.extent(2),
                         p.w.extent(3), max_box);
  }
  if (p.stride[1] > roles.image.extent(3)) return "the image has one column, and the stride is 2";
  if (std::string sentence = line_boxes_violation(is_data(p) ? "dy" : "x", roles.image); !sentence.empty())
    return sentence;
  return line_boxes_violation("w", p.w);
}

// The steps of a shape across, down and along the images, and the parts of the groups.
struct Steps {
  Index across, down, images, parts;
  Steps(GroupedRoles const& roles, GroupWindowsShape const& shape)
      : across(ceiling_divide(roles.result.extent(3), shape.across * GroupWindowsShape::patch)),
        down(ceiling_divide(roles.result.extent(2), shape.down * GroupWindowsShape::patch)),
        images(ceiling_divide(roles.result.extent(0), shape.images)),
        parts(ceiling_divide(roles.groups, shape.groups())) {}
  Index all() const { return across * down * images; }
};

// Tries every shape; keeps the one predicted to be fastest.
class GroupWindowsSearch {
 public:
  GroupWindowsSearch(Problem const& problem, Device const& device)
      : problem_(problem), device_(device), roles_(grouped_roles(problem)) {
    base_.rows = grouped_axis(problem, 0).axis, base_.columns = grouped_axis(problem, 1).axis;
    base_.inputs = to_int(roles_.inputs), base_.outputs = to_int(roles_.outputs);
    base_.transposed = is_data(problem);
  }

  Offer<Problem> best() {
    if (base_.groups() * base_.columns_of_product() > max_product_columns) {
      best_.refuse(fmt::format(
          "{} channels of the result per group: the {} groups in 64 channels of the image have {} columns of "
          "products; at most {}",
          base_.outputs, base_.groups(), base_.groups() * base_.columns_of_product(), max_product_columns));
      return std::move(best_).result();
    }
    if (device_.backend == Backend::emulator) {
      for (GroupWindowsShape const& shape : emulated_group_windows_shapes)
        if (shape.rows == base_.rows && shape.columns == base_.columns && shape.inputs == base_.inputs &&
            shape.outputs == base_.outputs && shape.transposed == base_.transposed)
          try_shape(shape);
      if (!best_.found()) best_.refuse("the emulator has this kernel for few sizes of filters and groups");
      return std::move(best_).result();
    }
    TensorDescription const& result = roles_.result;
    Index const across = ceiling_divide(result.extent(3), GroupWindowsShape::patch),
                down = ceiling_divide(result.extent(2), GroupWindowsShape::patch);
    GroupWindowsShape shape = base_;
    for (shape.across = 1; shape.across <= std::min<Index>(across, 8); ++shape.across)
      for (shape.down = 1; shape.down <= std::min<Index>(down, 8); ++shape.down)
        for (int const images : {1, 2, 4})
          for (int const consumers : {1, 2, 3})
            for (int const stages : {2, 3, 4}) {
              if (images > 1 && (shape.across < across || shape.down < down || images > result.extent(0)))
                continue;
              shape.images = images, shape.consumers = consumers, shape.stages = stages;
              try_shape(shape);
            }
    return std::move(best_).result();
  }

 private:
  void try_shape(GroupWindowsShape shape) {
    if (shape.image_columns() > max_box || shape.image_rows() > max_box ||
        shape.shared_bytes() > device_.gpu.shared_bytes_per_block)
      return best_.refuse(fmt::format(
          "filters of {} taps and two stages of the image do not fit in shared memory", shape.taps()));
    int const registers = 72 + shape.groups() * shape.columns_of_product() / 2;
    bool const is_emulated = device_.backend == Backend::emulator;
    if (!is_emulated)
      shape.blocks =
          std::max(1, resident_blocks(device_.gpu, shape.threads(), registers, shape.shared_bytes()));
    Steps const steps(roles_, shape);
    Index const resident = Index{shape.blocks} * (is_emulated ? 2 : device_.gpu.multiprocessors);
    Index const shares = std::clamp<Index>(resident / steps.parts, 1, steps.all());
    double const seconds = predicted(shape, steps, shares);
    if (!best_.takes(seconds)) return;
    ConvolutionRecipe recipe;
    recipe.algorithm = ConvolutionAlgorithm::group_windows;
    recipe.product = product_recipe(all_channels_form(problem_));
    recipe.product.policy.multiply = Multiply::wgmma;
    recipe.product.predicted_seconds = seconds;
    recipe.own = GroupWindowsRecipe{shape, to_int(shares)};
    best_.take(
        {{},
         0,
         seconds,
         recipe,
         fmt::format("wgmma, {} groups, {}x{}x{} patches of 8x8 outputs at a time, {} stages, {} warpgroups, "
                     "{} bytes of shared memory, {} blocks per multiprocessor, 1 launch",
                     shape.groups(), shape.images, shape.down, shape.across, shape.stages, shape.consumers,
                     shape.shared_bytes(), shape.blocks)});
  }

  // Predicted seconds: limited by tensor cores, copies, issue slots, latency or memory.
  double predicted(GroupWindowsShape const& shape, Steps const& steps, Index shares) const {
    constexpr double launch_seconds = 3e-6, clocks_of_line = 3.5, clocks_of_row = 4, clocks_of_step = 100,
                     clocks_of_patch = 1200, clocks_of_block = 4000;
    Gpu const& gpu = device_.gpu;
    double const patches = shape.patches();
    double const product = shape.taps() * shape.inputs / 16.0 * shape.groups() *
                           std::max(16.0, shape.columns_of_product() / 2.0);  // clocks of a patch
    double const copies = static_cast<double>(shape.copied_bytes()) / 128 * clocks_of_line +
                          shape.phases() * shape.images * shape.image_rows() * clocks_of_row;
    double const results = 64.0 * shape.groups() * shape.columns_of_product(),
                 issue = patches * (results / 8 / 32 * 50 + results / 64 * 8) / 4;
    double const alone = clocks_of_step + std::ceil(patches / shape.consumers) * (product + clocks_of_patch);
    Index const blocks = steps.parts * shares;
    double const of_multiprocessor = std::ceil(static_cast<double>(blocks) / gpu.multiprocessors);
    double const step = std::max({patches * product, copies, issue,
                                  alone / std::min<double>(shape.blocks, of_multiprocessor)}) +
                        0.1 * (patches * product + copies + issue);
    double const steps_of_block = std::ceil(static_cast<double>(steps.all()) / static_cast<double>(shares));
    // Nothing is multiplied until the first steps of all blocks have arrived.
    double const compute =
        (of_multiprocessor * (copies + steps_of_block * step) + clocks_of_block) / gpu.clock_hertz;
    double const memory = static_cast<double>(roles_.image.bytes() + roles_.result.bytes()) /
                          (0.85 * gpu.memory_bytes_per_second);
    return launch_seconds + std::max(compute, memory) + 0.2 * std::min(compute, memory);
  }

  Problem const& problem_;
  Device const& device_;
  GroupedRoles roles_;
  GroupWindowsShape base_;
  BestOffer<Problem> best_;
};

// The arguments without tensor maps.
GroupWindowsArguments arguments_of(Problem const& p, GroupWindowsRecipe const& recipe,
                                   ConvolutionForm const& form) {
  GroupedRoles const roles = grouped_roles(p);
  Steps const steps(roles, recipe.shape);
  GroupWindowsArguments window;
  set_windows(window, p, form);
  window.images = to_int(roles.result.extent(0));
  window.groups = to_int(roles.groups);
  window.steps = to_int(steps.all()), window.shares = recipe.shares;
  window.parts = Divisor(steps.parts);
  window.steps_across = Divisor(steps.across), window.steps_down = Divisor(steps.down);
  return window;
}

}  // namespace

Offer<Problem> group_windows(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = group_windows_violation(problem, device, options);
  if (offer.refusal.empty() && all_channels_form(problem).swapped)
    offer.refusal = "the channels of the result are not along n of the product";
  if (!offer.refusal.empty()) return offer;
  return GroupWindowsSearch(problem, device).best();
}

std::string GroupWindowsTraits::print() const {
  return fmt::format(
      "GroupWindowsTraits<GroupWindowsShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}, {},\n{},\n{}>",
      text_of(shape.rows), text_of(shape.columns), shape.inputs, shape.outputs, shape.images, shape.down,
      shape.across, shape.stages, shape.consumers, shape.blocks, shape.transposed, name_of(type), epilogue,
      destination);
}

program::Program group_windows_program(Plan<Problem> const& plan) {
  Problem const& problem = plan.problem;
  auto const& recipe = std::get<GroupWindowsRecipe>(plan.recipe.own);
  GroupWindowsShape const& shape = recipe.shape;
  ConvolutionForm form = all_channels_form(problem);
  cap_widths(form, 8);
  ConvolutionForm const merged = with_merged_rows(form);
  ConvolutionProgram made(plan, {});
  auto const threads = static_cast<unsigned>(shape.threads());
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = GroupWindowsParameters<Epilogue, Destination>;
    KernelTypes const types = made.types_of(merged);
    GroupWindowsTraits const traits{shape, problem.w.type, types.epilogue, types.destination};
    std::size_t const kernel =
        made.add_kernel<Parameters>({.headers = {"conv/grouped/group_windows.h"},
                                     .entry = "group_windows_kernel",
                                     .traits = traits.print(),
                                     .asserted = {{"sizeof(ComposedTraits::SharedStorage)",
                                                   static_cast<std::size_t>(shape.shared_bytes())}},
                                     .threads = threads,
                                     .shared_bytes = static_cast<unsigned>(shape.shared_bytes())},
                                    form);
    GroupWindowsArguments const window = arguments_of(problem, recipe, form);
    // Tensors of a data gradient: dy, w, dx.
    made.launch<Parameters>(
        kernel, {Index{window.parts.divisor} * window.shares}, [=](program::Run const& run, Parameters& to) {
          to.window = window;
          for (int phase = 0; phase < shape.phases(); ++phase)
            to.window.image[phase] =
                run.encode(line_boxes(grouped_roles(problem).image, run.tensors[0], phase, shape.phases(),
                                      shape.image_columns(), shape.image_rows(), shape.images));
          to.window.filter = run.encode(filter_boxes(
              problem.w, run.tensors[1],
              {shape.filter_line_channels(), shape.tap_lines(), shape.columns.taps, shape.rows.taps}));
          fill_destination(to.d, form.d, ConvolutionProgram::result(run));
          fill_epilogue(to.epilogue, form, run);
        });
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
