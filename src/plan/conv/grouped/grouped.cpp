// Shape choice, predicted time and program of grouped convolutions on tensor cores.
#include "src/plan/conv/grouped/grouped.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/conv/filter/grouped_filter.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// Channels of a block, whose lines have 128 bytes.
Index max_channels(DataType type) { return 128 / size_of(type); }

std::string grouped_image_violation(Problem const& p, Device const& device) {
  if (std::string sentence = grouped_violation(p, device, true); !sentence.empty()) return sentence;
  for (int i : {0, 1}) {
    bool const strided = p.direction == ConvolutionDirection::data && p.stride[i] > 1;
    if (strided && (p.dilation[i] > 1 || p.stride[i] > max_grouped_phases))
      return fmt::format("a data gradient with stride {} and dilation {}; at most {}, without dilation",
                         p.stride[i], p.dilation[i], max_grouped_phases);
  }
  return {};
}

class GroupedSearch {
 public:
  GroupedSearch(Problem const& problem, Device const& device)
      : roles_(grouped_roles(problem)),
        gpu_(device.gpu),
        is_emulated_(device.backend == Backend::emulator),
        rows_(grouped_axis(problem, 0)),
        columns_(grouped_axis(problem, 1)),
        unit_(grouped_unit(roles_.image)) {
    base_.rows = rows_.axis, base_.columns = columns_.axis;
    base_.inputs = to_int(roles_.inputs), base_.outputs = to_int(roles_.outputs);
    base_.masked = rows_.masked || columns_.masked;
    base_.bytes = size_of(roles_.image.type);
    auto const& filter = problem.w;
    base_.together = roles_.filter_input == 1 && filter.alignment % 8 == 0;
    for (int d : {0, 1, 2, 3})
      if (Index const stride = filter.layout.stride[d];
          stride != 1 && stride % base_.of_quad() != 0 && filter.extent(d) > 1)
        base_.together = false;
    if (is_emulated_) base_.warps = unfixed_grouped_warps;
  }

  GroupedPlan best() {
    best_.refusal = fmt::format("{} taps of {} channels need more registers than a thread has", base_.taps(),
                                base_.inputs);
    if (unit_ == 0) {
      best_.refusal = "the image's pixels are not multiples of 8 bytes apart";
      return best_;
    }
    if (int const copied = smallest_shape().copied_bytes(); copied > unit_) {
      best_.refusal = fmt::format("the image's pixels are not multiples of {} bytes apart", copied);
      return best_;
    }
    int const fragments_of_group = (base_.outputs + 7) / 8;
    for (int const fragments : {1, 2, 4}) {
      if (fragments_of_group % fragments != 0) continue;
      Index groups = std::min<Index>(max_channels(roles_.image.type) / std::max(base_.inputs, base_.outputs),
                                     roles_.groups);
      if (is_emulated_)
        groups = std::min<Index>(groups, std::max(1, unfixed_grouped_works * 2 / fragments_of_group));
      for (; groups > 0; groups /= 2) {
        GroupedShape shape = base_;
        shape.fragments = fragments, shape.groups = to_int(groups);
        if (shape.copied_bytes() <= unit_) try_tiles(shape);
      }
    }
    return best_;
  }

 private:
  GroupedShape smallest_shape() const {
    GroupedShape shape = base_;
    shape.groups = 1;
    return shape;
  }

  void try_tiles(GroupedShape shape) {
    for_each_grouped_tile(roles_.image.extent(0), rows_.phases.phase[0].outputs,
                          columns_.phases.phase[0].outputs, [&](int images, int down, int across) {
                            shape.images = images, shape.down = down, shape.across = across;
                            try_shape(shape);
                          });
  }

  void try_shape(GroupedShape shape) {
    constexpr int max_filters = 40;
    int const filters = shape.works_of_warp() * shape.fragments * shape.steps();
    if (is_emulated_ ? shape.steps() > unfixed_grouped_steps || shape.works_of_warp() > unfixed_grouped_works
                     : filters > max_filters)
      return;
    int const offsets = shape.quads() % 4 == 0 ? 0 : shape.steps();
    int const registers =
        (40 + 2 * filters + offsets + (4 + 4 * shape.fragments) * shape.rows_together() + 7) / 8 * 8;
    int const bytes = shape.shared_bytes();
    if (bytes > gpu_.shared_bytes_per_block) return;
    shape.blocks = resident_blocks(gpu_, shape.threads(), registers, bytes);
    if (shape.blocks < 1) return;
    GroupedPlan plan;
    plan.shape = shape;
    plan.parts = ceiling_divide(roles_.groups, shape.groups);
    plan.tiles_down = ceiling_divide(rows_.phases.phase[0].outputs, shape.down);
    plan.tiles_across = ceiling_divide(columns_.phases.phase[0].outputs, shape.across);
    plan.tiles = plan.tiles_down * plan.tiles_across * ceiling_divide(roles_.image.extent(0), shape.images);
    Index const others = plan.parts * rows_.phases.count.divisor * columns_.phases.count.divisor,
                resident = Index{shape.blocks} * (is_emulated_ ? 2 : gpu_.multiprocessors);
    plan.slots = std::clamp<Index>(resident / others, 1, plan.tiles);
    plan.blocks = others * plan.slots;
    if (plan.tiles > max_int / 2 || plan.blocks > max_int) return;
    plan.seconds = predicted(plan);
    if (best_.refusal.empty() && plan.seconds >= best_.seconds) return;
    best_ = plan;
  }

  // Predicted seconds: limited by tensor cores, shared memory, issue slots, latency or memory. Instructions
  // as counted by ncu (docs/decisions/0026).
  double predicted(GroupedPlan const& plan) const {
    constexpr double launch_seconds = 3e-6, mma_clocks = 2.2, quads_clocks = 4.6, tile_clocks = 1200,
                     pass_clocks = 500, step_clocks = 24, issued = 0.75;
    GroupedShape const& shape = plan.shape;
    double const rows = static_cast<double>(ceiling_divide(shape.pixels(), 16)), warps = shape.warps;
    double const works = rows * shape.works(), steps = works * shape.steps();  // of warps
    double const results = static_cast<double>(shape.pixels()) * shape.channels(),
                 staged = static_cast<double>(shape.passes()) * GroupedShape::pass_pixels * shape.channels();
    double const bytes_of_piece = shape.copied_bytes(),
                 pieces = shape.halo() * shape.line_bytes() / bytes_of_piece;
    double const tensor = steps * shape.fragments * mma_clocks;
    double const shared = steps * quads_clocks + pieces * bytes_of_piece / 64 + results * 10 / 128;
    double const copies =
        pieces / 32 * (4 + 40.0 / pieces_together(to_int(shape.line_bytes() / shape.copied_bytes())));
    double const issue = (steps * (8 + shape.fragments + (shape.masked ? 2 : 0)) +
                          works * (14 + 6 * shape.fragments) + copies + staged / shape.run() / 32 * 16 +
                          results / shape.run() / 32 * 45 + shape.passes() * warps * 35) /
                         4;
    double const alone = tile_clocks + shape.passes() * pass_clocks +
                         steps / warps / shape.rows_together() * step_clocks + issue;
    double const clocks =
        std::max({tensor, shared, issue / issued, alone / shape.blocks}) + 0.1 * (tensor + shared + issue);
    double const filters = warps * shape.works_of_warp() * shape.fragments * shape.steps() *
                               (shape.together ? 40 : 90) / 4 / issued +
                           2500;
    double const multiprocessors = is_emulated_ ? 2 : gpu_.multiprocessors;
    double const of_multiprocessor = std::ceil(static_cast<double>(plan.blocks) / multiprocessors);
    double const tiles = std::ceil(static_cast<double>(plan.tiles) / static_cast<double>(plan.slots));
    // Fewer blocks hide less latency.
    double const of_tile = std::max(clocks, alone / std::min<double>(shape.blocks, of_multiprocessor));
    double const compute = of_multiprocessor * (tiles * of_tile + filters) / gpu_.clock_hertz;
    auto const bytes = [](TensorDescription const& of) {
      return static_cast<double>(of.layout.size() * size_of(of.type));
    };
    double const memory = (bytes(roles_.image) * (1 + 0.15 * halo_share(shape)) + bytes(roles_.result)) /
                          (0.85 * gpu_.memory_bytes_per_second);
    return launch_seconds + std::max(compute, memory) + 0.2 * std::min(compute, memory);
  }

  GroupedRoles roles_;
  Gpu const& gpu_;
  bool is_emulated_;
  GroupedWindowAxis rows_, columns_;
  int unit_;
  GroupedShape base_;
  GroupedPlan best_;
};

// Returns the arguments without pointers.
GroupedArguments arguments_of(Problem const& p, GroupedPlan const& plan, ConvolutionForm const& form) {
  GroupedRoles const roles = grouped_roles(p);
  GroupedArguments window;
  window.image_stride = stride_of(roles.image, 0);
  window.image_row = to_int(stride_of(roles.image, 2)),
  window.image_column = to_int(stride_of(roles.image, 3));
  window.images = to_int(roles.image.extent(0));
  window.image_rows = to_int(roles.image.extent(2)), window.image_columns = to_int(roles.image.extent(3));
  window.image_channels = to_int(roles.image.extent(1));
  window.filter_group = p.w.extent(0) / roles.groups * p.w.layout.stride[0];
  window.filter_output = roles.filter_output, window.filter_input = roles.filter_input;
  window.rows = grouped_axis(p, 0).phases, window.columns = grouped_axis(p, 1).phases;
  window.groups = to_int(roles.groups);
  set_pixel_numbers(window, form);
  window.tiles = to_int(plan.tiles), window.slots = to_int(plan.slots);
  window.parts = Divisor(plan.parts);
  window.tiles_across = Divisor(plan.tiles_across), window.tiles_down = Divisor(plan.tiles_down);
  window.shape = plan.shape;
  return window;
}

}  // namespace

GroupedRoles grouped_roles(Problem const& p) {
  bool const data = p.direction == ConvolutionDirection::data;
  Index const groups = std::max<Index>(1, p.groups), filters = p.w.extent(0) / groups,
              channels = p.w.extent(1);
  Index const of_filter = p.w.layout.stride[0], of_channel = p.w.layout.stride[1];
  if (data) return {p.y, p.x, groups, filters, channels, of_channel, of_filter};
  return {p.x, p.y, groups, channels, filters, of_filter, of_channel};
}

GroupedWindowAxis grouped_axis(Problem const& p, int i) {
  int const taps = to_int(p.w.extent(2 + i)), stride = to_int(p.stride[i]), dilation = to_int(p.dilation[i]),
            pad = to_int(p.pad_begin[i]);
  GroupedWindowAxis all;
  all.phases.count = Divisor(1);
  all.phases.filter_tap = p.w.layout.stride[2 + i];
  int const outputs = to_int((p.direction == ConvolutionDirection::data ? p.x : p.y).extent(2 + i));
  if (p.direction == ConvolutionDirection::forward) {
    all.axis = {taps, stride, dilation};
    all.phases.phase[0] = {-pad, outputs, taps, 0};
    return all;
  }
  all.phases.tap_step = -stride;
  if (stride == 1) {
    all.axis = {taps, 1, dilation};
    all.phases.phase[0] = {pad - (taps - 1) * dilation, outputs, taps, taps - 1};
    return all;
  }
  all.axis = {to_int(ceiling_divide(taps, stride)), 1, 1};
  all.phases.count = Divisor(stride);
  for (int f = 0; f < stride && f < max_grouped_phases; ++f) {
    int const first = (f + pad) % stride,
              of_phase = to_int(ceiling_divide(std::max(0, taps - first), stride));
    all.phases.phase[f] = {(f + pad - first) / stride - (of_phase - 1),
                           to_int(ceiling_divide(std::max(0, outputs - f), stride)), of_phase,
                           first + stride * (of_phase - 1)};
    all.masked = all.masked || of_phase < all.axis.taps;
  }
  return all;
}

std::string grouped_violation(Problem const& p, Device const& device, bool takes_tf32) {
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  GroupedRoles const roles = grouped_roles(p);
  DataType const type = roles.image.type,
                 other = (p.direction == ConvolutionDirection::filter ? p.y : p.w).type;
  if (roles.groups < 2) return "there is one group";
  bool const is_16_bits = type == DataType::f16 || type == DataType::bf16;
  if (other != type || !(is_16_bits || (takes_tf32 && type == DataType::tf32)))
    return fmt::format("both factors must be {}, not {} and {}",
                       takes_tf32 ? "f16, bf16 or tf32" : "f16 or bf16", name_of(type), name_of(other));
  if (accumulator_type(type, type) != DataType::f32) return "sums must be f32";
  if (!features_of(device.gpu).async_copy) return device.gpu.name + " has no asynchronous copies";
  if (std::string sentence = mma_device_violation(type, device.gpu); !sentence.empty()) return sentence;
  if (device.backend == Backend::emulator &&
      !emulator::multiplies_convolution(MainLoop::multistage, Multiply::mma, type, type))
    return fmt::format("the emulator has this kernel for f16{}, not for {}", takes_tf32 ? " and tf32" : "",
                       name_of(type));
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  Index const most = max_channels(type);
  if (roles.inputs % 4 != 0 || roles.outputs % 4 != 0 || roles.inputs > most || roles.outputs > most)
    return fmt::format("groups of {} and {} channels; both must be multiples of 4, and at most {}",
                       roles.inputs, roles.outputs, most);
  for (TensorDescription const* tensor : {&roles.image, &roles.result})
    if (tensor->layout.stride[1] != 1)
      return fmt::format("{}: its channels are {} elements apart; they must be contiguous",
                         to_string(*tensor), tensor->layout.stride[1]);
  for (TensorDescription const* tensor : {&roles.image, &roles.result})
    for (int d : {2, 3})
      if (Index const stride = tensor->layout.stride[d];
          stride < 0 || stride * tensor->extent(d) > max_int / 2)
        return fmt::format(
            "rows or columns are {} elements apart; offsets within an image must fit in 31 bits", stride);
  if (roles.result.extent(0) * roles.result.extent(2) * roles.result.extent(3) > max_int / 2)
    return "too many pixels: split the batch";
  return {};
}

int grouped_unit(TensorDescription const& image) {
  for (int const unit : {16, 8})
    if (image.alignment % unit == 0 && pixels_begin_at(image, unit)) return unit;
  return 0;
}

GroupedPlan grouped_plan(Problem const& problem, Device const& device) {
  GroupedPlan plan;
  plan.refusal = grouped_image_violation(problem, device);
  if (plan.refusal.empty() && all_channels_form(problem).swapped)
    plan.refusal = "the channels of the result are not along n of the product";
  return plan.refusal.empty() ? GroupedSearch(problem, device).best() : plan;
}

std::string text_of(GroupedAxis const& axis) {
  return fmt::format("GroupedAxis{{{}, {}, {}}}", axis.taps, axis.step, axis.dilation);
}

std::string GroupedTraits::print() const {
  return fmt::format(
      "GroupedTraits<GroupedShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}, {}, {},\n{},\n{}>",
      text_of(shape.rows), text_of(shape.columns), shape.inputs, shape.outputs, shape.groups, shape.images,
      shape.down, shape.across, shape.fragments, shape.warps, shape.blocks, shape.masked, shape.together,
      shape.bytes, fixed, name_of(type), epilogue, destination);
}

program::Program grouped_program(Plan<Problem> const& plan) {
  GroupedPlan const grouped = grouped_plan(plan.problem, plan.device);
  GroupedShape const& shape = grouped.shape;
  ConvolutionForm form = all_channels_form(plan.problem);
  cap_widths(form, shape.run());
  ConvolutionProgram made(plan, {});
  bool const fixed = !made.is_emulated();
  auto const threads = static_cast<unsigned>(shape.threads());
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = GroupedParameters<Epilogue, Destination>;
    KernelTypes const host = emulated_types(DataType::f32);
    GroupedTraits const traits{fixed ? shape : emulated_grouped_shape(shape.fragments, shape.bytes), fixed,
                               plan.problem.w.type, fixed ? epilogue_text(form) : host.epilogue,
                               fixed ? destination_text(form) : host.destination};
    std::size_t const kernel =
        made.add_kernel<Parameters>({.headers = {"conv/grouped/grouped.h"},
                                     .entry = "grouped_kernel",
                                     .traits = traits.print(),
                                     .asserted = {{"ComposedTraits::threads", threads}},
                                     .threads = threads,
                                     .shared_bytes = static_cast<unsigned>(shape.shared_bytes())},
                                    form);
    made.launch<Parameters>(kernel, {grouped.blocks},
                            made.window_writer(arguments_of(plan.problem, grouped, form), form));
  });
  return std::move(made).finish();
}

Offer<Problem> grouped(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  if (problem.direction == ConvolutionDirection::filter) return grouped_filter(problem, device);
  GroupedPlan const plan = grouped_plan(problem, device);
  offer.refusal = plan.refusal;
  if (!offer.refusal.empty()) return offer;
  GroupedShape const& shape = plan.shape;
  offer.recipe.algorithm = ConvolutionAlgorithm::grouped;
  offer.recipe.product = product_recipe(all_channels_form(problem));
  offer.recipe.product.policy.multiply = Multiply::mma;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds = plan.seconds;
  offer.text = fmt::format(
      "mma, {} groups and {}x{}x{} outputs per block, {} warps of {} fragments, {} steps, {} bytes of shared "
      "memory, {} blocks per multiprocessor, 1 launch",
      shape.groups, shape.images, shape.down, shape.across, shape.warps, shape.fragments, shape.steps(),
      shape.shared_bytes(), shape.blocks);
  return offer;
}

}  // namespace cosmati::plan
