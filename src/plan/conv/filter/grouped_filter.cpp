// Shape choice, predicted time and program of grouped filter gradients on tensor cores.
#include "src/plan/conv/filter/grouped_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/grouped/grouped.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

GroupedAxis axis_of(Problem const& p, int i) {
  return {to_int(p.w.extent(2 + i)), to_int(p.stride[i]), to_int(p.dilation[i])};
}

class GroupedFilterSearch {
 public:
  GroupedFilterSearch(Problem const& problem, Device const& device)
      : problem_(problem), gpu_(device.gpu), is_emulated_(device.backend == Backend::emulator) {
    groups_ = std::max<Index>(1, problem.groups);
    base_.rows = axis_of(problem, 0), base_.columns = axis_of(problem, 1);
    base_.bytes = size_of(problem.x.type);
    base_.inputs = to_int(problem.w.extent(1)), base_.outputs = to_int(problem.w.extent(0) / groups_);
  }

  GroupedFilterPlan best() {
    for (int const channels : {base_.inputs, base_.outputs})
      if (channels != 4 && channels % 8 != 0) {
        best_.refusal = fmt::format("groups of {} and {} channels; both must be 4 or multiples of 8",
                                    base_.inputs, base_.outputs);
        return best_;
      }
    for (TensorDescription const* tensor : {&problem_.x, &problem_.y})
      if (grouped_unit(*tensor) < 16) {
        best_.refusal = to_string(*tensor) + ": its pixels are not multiples of 16 bytes apart";
        return best_;
      }
    best_.refusal = fmt::format("{} taps of {} and {} channels need more registers than a thread has",
                                base_.taps(), base_.inputs, base_.outputs);
    for (int const fragments : {1, 2, 3, 4}) {
      GroupedFilterShape shape = base_;
      shape.fragments = fragments;
      if (shape.octets_of_groups() % fragments != 0 || (is_emulated_ && fragments == 3)) continue;
      for (int groups = 64 / std::max(shape.inputs, shape.outputs); groups > 0; groups /= 2) {
        shape.groups = groups;
        bool const octets = groups * shape.inputs % 8 == 0 && groups * shape.outputs % 8 == 0;
        if (!octets || shape.works() > shape.warps || (groups > 2 && groups >= 2 * groups_)) continue;
        try_tiles(shape);
      }
    }
    return best_;
  }

 private:
  void try_tiles(GroupedFilterShape shape) {
    for_each_grouped_tile(problem_.x.extent(0), problem_.y.extent(2), problem_.y.extent(3),
                          [&](int images, int down, int across) {
                            shape.images = images, shape.down = down, shape.across = across;
                            try_shape(shape);
                          });
  }

  void try_shape(GroupedFilterShape shape) {
    constexpr int max_sums = 112;
    int const sums = shape.tap_pairs() * shape.fragments * 4;
    if (is_emulated_ ? shape.tap_pairs() > unfixed_grouped_tap_pairs : sums > max_sums) return;
    int const registers = (56 + sums + 4 * shape.fragments + 7) / 8 * 8, bytes = shape.shared_bytes();
    if (bytes > gpu_.shared_bytes_per_block) return;
    shape.blocks = resident_blocks(gpu_, shape.threads(), registers, bytes);
    if (is_emulated_) shape.blocks = 1;
    if (shape.blocks < 1) return;
    GroupedFilterPlan plan;
    plan.shape = shape;
    plan.group_parts = ceiling_divide(groups_, shape.groups);
    plan.tiles_down = ceiling_divide(problem_.y.extent(2), shape.down);
    plan.tiles_across = ceiling_divide(problem_.y.extent(3), shape.across);
    plan.tiles = plan.tiles_down * plan.tiles_across * ceiling_divide(problem_.x.extent(0), shape.images);
    Index const resident = Index{shape.blocks} * (is_emulated_ ? 2 : gpu_.multiprocessors);
    plan.parts = std::clamp<Index>(resident / plan.group_parts, 1, plan.tiles);
    while (!is_emulated_ && plan.shape.slices > 1 && plan.sums() < 4 * plan.shape.slices)
      plan.shape.slices /= 2;
    plan.weights = problem_.w.extent(0) * problem_.w.extent(1) * shape.taps();
    if (plan.tiles > max_int || plan.weights > max_int || plan.group_parts * plan.parts > max_int) return;
    plan.seconds = predicted(plan);
    if (best_.refusal.empty() && plan.seconds >= best_.seconds) return;
    best_ = plan;
  }

  // Predicted seconds: limited by tensor cores, shared memory, issue slots, latency or memory; then the sums.
  double predicted(GroupedFilterPlan const& plan) const {
    constexpr double launches_seconds = 6e-6, mma_clocks = 2.2, matrices_clocks = 4.6, element_clocks = 1.15,
                     tile_clocks = 2500, pass_clocks = 60, measured = 1.4;
    GroupedFilterShape const& shape = plan.shape;
    bool const by_elements = shape.bytes == 4;
    double const passes =
        static_cast<double>(ceiling_divide(shape.pixels(), GroupedFilterShape::pass_pixels));
    double const works = passes * shape.works(), pairs = shape.tap_pairs();
    double const pieces = (static_cast<double>(shape.halo()) * shape.inputs +
                           static_cast<double>(shape.pixels()) * shape.outputs) *
                          shape.groups * shape.bytes / 16;
    // In a pass: steps of an mma's depth, and the loads of a pair of taps in each.
    double const steps = by_elements ? 4 : 2, loads = by_elements ? 4 : 1;
    double const tensor = works * steps * pairs * shape.fragments * mma_clocks;
    double const shared = works * (by_elements ? (16 * pairs + 8 * shape.fragments + 8) * element_clocks
                                               : (2 * pairs + shape.fragments) * matrices_clocks) +
                          pieces / 4;
    double const issue =
        (works * (40 + steps * pairs * (2 * loads + 2 + shape.fragments) + 4 * shape.fragments) +
         pieces * 28 / 32) /
        4;
    double const alone = tile_clocks +
                         works / (shape.works() * shape.share()) *
                             (pass_clocks + steps * pairs * (8 + loads + 5 * shape.fragments)) +
                         issue;
    double const clocks = measured * (std::max({tensor, shared, issue, alone / shape.blocks}) +
                                      0.1 * (tensor + shared + issue));
    double const multiprocessors = is_emulated_ ? 2 : gpu_.multiprocessors;
    double const tiles_of_block =
        std::ceil(static_cast<double>(plan.tiles) / static_cast<double>(plan.parts));
    double const blocks = static_cast<double>(plan.group_parts * plan.parts);
    double const compute = tiles_of_block * std::ceil(blocks / multiprocessors) * clocks / gpu_.clock_hertz;
    auto const bytes = [](TensorDescription const& of) {
      return static_cast<double>(of.layout.size() * size_of(of.type));
    };
    double const rate = 0.85 * gpu_.memory_bytes_per_second;
    double const memory = (bytes(problem_.x) * (1 + 0.15 * halo_share(shape)) + bytes(problem_.y)) / rate;
    return launches_seconds + std::max(compute, memory) + 0.2 * std::min(compute, memory) +
           2 * static_cast<double>(plan.bytes()) / rate;
  }

  Problem const& problem_;
  Gpu const& gpu_;
  bool is_emulated_;
  Index groups_;
  GroupedFilterShape base_;
  GroupedFilterPlan best_;
};

// Sets the parameters except pointers, destination and epilogue.
template <class Parameters>
void describe(Parameters& to, Problem const& p, GroupedFilterPlan const& plan, ConvolutionForm const& form) {
  to.image_stride = stride_of(p.x, 0), to.gradient_image = stride_of(p.y, 0);
  to.image_row = to_int(stride_of(p.x, 2)), to.image_column = to_int(stride_of(p.x, 3));
  to.gradient_row = to_int(stride_of(p.y, 2)), to.gradient_column = to_int(stride_of(p.y, 3));
  to.images = to_int(p.x.extent(0));
  to.image_rows = to_int(p.x.extent(2)), to.image_columns = to_int(p.x.extent(3));
  to.outputs_down = to_int(p.y.extent(2)), to.outputs_across = to_int(p.y.extent(3));
  to.top = -to_int(p.pad_begin[0]), to.left = -to_int(p.pad_begin[1]);
  to.groups = to_int(std::max<Index>(1, p.groups));
  to.tiles = to_int(plan.tiles), to.parts = to_int(plan.parts);
  to.group_parts = Divisor(plan.group_parts);
  to.tiles_across = Divisor(plan.tiles_across), to.tiles_down = Divisor(plan.tiles_down);
  to.weights = to_int(plan.weights), to.sums = to_int(plan.sums());
  to.channel_number = to_int(tap_digit(form, 'c').number);
  to.tap_row_number = to_int(tap_digit(form, 'r').number);
  to.tap_column_number = to_int(tap_digit(form, 's').number);
  to.swapped = form.image_is_a;
  to.shape = plan.shape;
}

}  // namespace

GroupedFilterPlan grouped_filter_plan(Problem const& problem, Device const& device) {
  GroupedFilterPlan plan;
  plan.refusal = grouped_violation(problem, device, true);
  return plan.refusal.empty() ? GroupedFilterSearch(problem, device).best() : plan;
}

std::string GroupedFilterTraits::print() const {
  return fmt::format(
      "GroupedFilterTraits<GroupedFilterShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}, {}, {},\n{},\n{}>",
      text_of(shape.rows), text_of(shape.columns), shape.inputs, shape.outputs, shape.groups, shape.images,
      shape.down, shape.across, shape.fragments, shape.warps, shape.blocks, shape.slices, shape.bytes, fixed,
      name_of(type), epilogue, destination);
}

program::Program grouped_filter_program(Plan<Problem> const& plan) {
  GroupedFilterPlan const grouped = grouped_filter_plan(plan.problem, plan.device);
  GroupedFilterShape const& shape = grouped.shape;
  ConvolutionForm form = forms_of(plan.problem).front();
  program::Workspace workspace;
  workspace.add("partial sums", plan.recipe.product_workspace());
  ConvolutionProgram made(plan, std::move(workspace));
  bool const fixed = !made.is_emulated();
  auto const threads = static_cast<unsigned>(shape.threads());
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = GroupedFilterParameters<Epilogue, Destination>;
    KernelTypes const host = emulated_types(DataType::f32);
    GroupedFilterTraits const traits{
        fixed ? shape : emulated_grouped_filter_shape(shape.fragments, shape.bytes), fixed,
        plan.problem.x.type, fixed ? epilogue_text(form) : host.epilogue,
        fixed ? destination_text(form) : host.destination};
    program::KernelSpec kernel{.headers = {"conv/grouped/grouped_filter.h"},
                               .entry = "grouped_filter_kernel",
                               .traits = traits.print(),
                               .asserted = {{"ComposedTraits::threads", threads}},
                               .threads = threads,
                               .shared_bytes = static_cast<unsigned>(shape.shared_bytes())};
    std::size_t const products = made.add_kernel<Parameters>(kernel, form);
    kernel.headers = {"conv/grouped/grouped_filter_sum.h"};
    kernel.entry = "grouped_filter_sum_kernel";
    kernel.shared_bytes = threads * static_cast<unsigned>(sizeof(float));
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    Parameters described;
    describe(described, plan.problem, grouped, form);
    auto const fill = [form, described](program::Run const& run, Parameters& to) {
      to = described;
      to.image = run.tensors[0], to.gradient = run.tensors[1];
      to.partials = reinterpret_cast<float*>(run.workspace);
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    };
    made.launch<Parameters>(products, {grouped.group_parts * grouped.parts}, fill);
    made.launch<Parameters>(sums, {ceiling_divide(grouped.weights, shape.threads() / shape.slices)}, fill);
  });
  return std::move(made).finish();
}

Offer<Problem> grouped_filter(Problem const& problem, Device const& device) {
  Offer<Problem> offer;
  GroupedFilterPlan const plan = grouped_filter_plan(problem, device);
  offer.refusal = plan.refusal;
  if (!offer.refusal.empty()) return offer;
  GroupedFilterShape const& shape = plan.shape;
  offer.recipe.algorithm = ConvolutionAlgorithm::grouped;
  offer.recipe.product = product_recipe(forms_of(problem).front());
  offer.recipe.product.policy.multiply = Multiply::mma;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds = plan.seconds;
  offer.recipe.product.partial_bytes = plan.bytes();
  offer.workspace_bytes = plan.bytes();
  offer.text = fmt::format(
      "mma, {} groups and tiles of {}x{}x{} outputs, {} parts of {} tiles, {} warps of {} fragments for {} "
      "pairs of taps, {} bytes of shared memory, {} blocks per multiprocessor, {} sums added, 2 launches",
      shape.groups, shape.images, shape.down, shape.across, plan.parts, plan.tiles, shape.warps,
      shape.fragments, shape.tap_pairs(), shape.shared_bytes(), shape.blocks, plan.sums());
  return offer;
}

}  // namespace cosmati::plan
