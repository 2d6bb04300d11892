// Shape choice, predicted time and program of wgrad_pointwise.
#include "src/plan/conv/filter/wgrad_pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/fprop_small_c.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr unsigned pointwise_sum_threads = 256;  // WgradPointwiseTraits
constexpr int channels_of_unit = 8;              // 16 bytes

bool is_in_units(TensorDescription const& flat) {
  return flat.extent(1) % channels_of_unit == 0 && flat.layout.stride[3] % channels_of_unit == 0;
}
// Whether pixels are adjacent, so that they can be copied as one range.
bool is_contiguous(TensorDescription const& flat) { return flat.layout.stride[3] == flat.extent(1); }

// Whether the rows of the product are the filters: the tensor with more channels, if both are in units.
bool has_rows_of_filters(Problem const& flat) {
  if (is_in_units(flat.x) != is_in_units(flat.y)) return is_in_units(flat.y);
  return flat.y.extent(1) >= flat.x.extent(1);
}

std::string wgrad_pointwise_violation(Problem const& p, Device const& device) {
  if (p.direction != ConvolutionDirection::filter) return "computes filter gradients only";
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  if (p.groups != 1) return fmt::format("{} groups; expected 1", p.groups);
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  Problem exchanged = p;
  std::swap(exchanged.x, exchanged.y);
  if (!is_flat(p) || !is_flat(exchanged))
    return "supports filters of one tap, without stride or padding, with the pixels of x and dy at equal distances";
  DataType const type = p.x.type;
  if (type != p.y.type || (type != DataType::f16 && type != DataType::bf16))
    return fmt::format("x and dy must both be f16 or bf16, not {} and {}", name_of(type), name_of(p.y.type));
  if (!mma_takes(type, type, accumulator_type(type, type)) || accumulator_type(type, type) != DataType::f32)
    return "sums must be f32";
  if (std::string sentence = mma_device_violation(type, device.gpu); !sentence.empty()) return sentence;
  if (device.backend == Backend::emulator && type != DataType::f16)
    return fmt::format("the emulator has this kernel for f16, not for {}", name_of(type));
  Problem const flat = flattened(p);
  if (!is_in_units(flat.x) && !is_in_units(flat.y))
    return fmt::format("x has {} channels and dy {}; one of them must be in units of {}", p.x.extent(1),
                       p.y.extent(1), channels_of_unit);
  for (TensorDescription const* tensor : {&flat.x, &flat.y}) {
    char const* const name = tensor == &flat.x ? "x" : "dy";
    if (tensor->layout.stride[1] != 1 && tensor->extent(1) > 1)
      return fmt::format("{}: its channels are {} elements apart; expected 1 (channels last)", name,
                         tensor->layout.stride[1]);
    if (tensor->alignment % max_vector_bytes != 0)
      return fmt::format("{}: aligned to {} bytes; expected {}", name, tensor->alignment, max_vector_bytes);
    if (!is_in_units(*tensor) && !is_contiguous(*tensor))
      return fmt::format(
          "{}: pixels of {} channels are {} elements apart; supported: adjacent pixels, or units of {}", name,
          tensor->extent(1), tensor->layout.stride[3], channels_of_unit);
  }
  return {};
}

class WgradPointwiseSearch {
 public:
  // `flat`: a single row of pixels.
  WgradPointwiseSearch(Problem const& flat, Device const& device)
      : gpu_(device.gpu), is_emulated_(device.backend == Backend::emulator), pixels_(flat.x.extent(3)) {
    best_.refusal =
        "no block fits in registers and shared memory (channels that are not in units of 8 must be in one block)";
    best_.rows_are_filters = has_rows_of_filters(flat);
    rows_ = best_.rows_are_filters ? flat.y : flat.x;
    columns_ = best_.rows_are_filters ? flat.x : flat.y;
  }

  WgradPointwisePlan best() {
    if (is_emulated_) {
      try_runs(emulated_wgrad_pointwise_shape());
      return best_;
    }
    constexpr int max_bands = 4, min_warps = 4, max_warps = 16;
    for (int const row_bands : {1, 2, 3, max_bands})
      for (int const column_bands : {1, 2})
        for (int const of_rows : {1, 2, 4, 8})
          for (int const of_columns : {1, 2})
            for (int const of_depth : {1, 2, 4, 8}) {
              int const warps = of_rows * of_columns * of_depth;
              if (warps < min_warps || warps > max_warps) continue;
              WgradPointwiseShape shape;
              shape.warps_of_rows = of_rows, shape.warps_of_columns = of_columns;
              shape.warps_of_depth = of_depth;
              shape.row_fragments = to_int(ceiling_divide(rows_.extent(1), Index{row_bands * of_rows * 16}));
              shape.column_fragments =
                  to_int(ceiling_divide(columns_.extent(1), Index{column_bands * of_columns * 8}));
              try_runs(shape);
            }
    return best_;
  }

 private:
  static WgradPointwiseOperand operand(TensorDescription const& tensor, int band) {
    bool const whole = tensor.extent(1) <= band;
    return {to_int(tensor.extent(1)), whole ? to_int(tensor.extent(1)) : band,
            whole && is_contiguous(tensor)};
  }

  void try_runs(WgradPointwiseShape shape) {
    constexpr Index max_sums = 160;
    if (Index{shape.row_fragments} * shape.column_fragments * 4 > max_sums) return;
    shape.rows = operand(rows_, shape.block_rows());
    shape.columns = operand(columns_, shape.block_columns());
    if (!shape.columns.contiguous && !is_in_units(columns_)) return;
    for (int const run : {8, 16, 32})
      for (int const stages : {3, 4}) {
        if (is_emulated_ && (run != 8 || stages != shape.stages)) continue;
        if (!shape.columns.in_units() && run % channels_of_unit != 0) continue;
        shape.run = run, shape.stages = stages;
        if (shape.steps() % shape.warps_of_depth == 0) try_shape(shape);
      }
  }

  void try_shape(WgradPointwiseShape shape) {
    constexpr int max_registers = 248;
    int const sums = shape.row_fragments * shape.column_fragments * 4;
    int const registers = (48 + sums + shape.row_fragments * 4 + shape.column_fragments * 2 + 7) / 8 * 8;
    int const bytes = shape.shared_bytes();
    if (registers > max_registers || bytes > gpu_.shared_bytes_per_block) return;
    shape.blocks = resident_blocks(gpu_, shape.threads(), registers, bytes);
    if (shape.blocks < 1) return;
    WgradPointwisePlan plan;
    plan.rows_are_filters = best_.rows_are_filters;
    plan.shape = shape;
    plan.row_bands = ceiling_divide(rows_.extent(1), Index{shape.block_rows()});
    plan.column_bands = ceiling_divide(columns_.extent(1), Index{shape.block_columns()});
    Index const stages = ceiling_divide(pixels_, Index{shape.pixels()});
    Index const resident = Index{shape.blocks} * (is_emulated_ ? 2 : gpu_.multiprocessors);
    plan.blocks = std::min(stages, std::max<Index>(1, resident / (plan.row_bands * plan.column_bands)));
    constexpr int most_slices = 16, parts_of_slice = 8;
    plan.shape.early = !is_emulated_ && features_of(gpu_).clusters;
    plan.shape.sum_slices = is_emulated_ ? shape.sum_slices : 1;
    while (!is_emulated_ && plan.shape.sum_slices < most_slices &&
           plan.blocks > Index{parts_of_slice} * plan.shape.sum_slices)
      plan.shape.sum_slices *= 2;
    constexpr Index max_grid_y = 65535;
    if (std::max(plan.row_bands, plan.column_bands) > max_grid_y || plan.sums() * plan.blocks > max_int)
      return;
    plan.seconds = predicted(plan, stages);
    if (best_.refusal.empty() && plan.seconds >= best_.seconds) return;
    best_ = plan;
  }

  // Predicted seconds of both kernels. Fitted on an H200 to 218 measurements of 19 layers, with a standard
  // deviation of 9 % (docs/decisions/0026).
  double predicted(WgradPointwisePlan const& plan, Index stages) const {
    // Clocks of an mma, of four matrices, of a stage's barrier, and of 32 sums that are written; issue slots
    // of a copy of 16 bytes; how many times longer it takes to load matrices one element at a time.
    constexpr double mma_clocks = 2, matrices_clocks = 2, stage_clocks = 40, sum_clocks = 4, copy_slots = 10,
                     elements = 7;
    constexpr double launches_seconds = 3e-6, share_of_memory = 0.93, share_of_sums = 1.4, overlap = 0.46,
                     few_warps = 0.02;
    WgradPointwiseShape const& shape = plan.shape;
    double const row_fragments = shape.block_rows() / 16.0, column_fragments = shape.block_columns() / 8.0;
    double const tensor = row_fragments * column_fragments * small_c_mma_clocks(mma_clocks, gpu_);
    double const matrices =
        row_fragments * shape.warps_of_columns +
        column_fragments / 2 * shape.warps_of_rows * (shape.columns.in_units() ? 1 : elements);
    double const copies =
        8 * (shape.run_units(shape.rows) + shape.run_units(shape.columns)) * copy_slots / 128;
    double const bands = to_double(plan.row_bands * plan.column_bands), blocks = to_double(plan.blocks);
    double const together =
        std::clamp(blocks * bands / gpu_.multiprocessors, 1.0, static_cast<double>(shape.blocks));
    double const of_stage =
        (shape.steps() * (tensor + matrices * matrices_clocks) + copies + stage_clocks / shape.blocks) *
        (1 + few_warps * std::pow(16 / (together * shape.threads() / 32), 2));
    double const last = sum_clocks * shape.warps_of_depth * shape.sums() / 32;
    double const compute =
        (std::ceil(to_double(stages) / blocks) * of_stage + last) * together / gpu_.clock_hertz;
    double const bytes =
        to_double(pixels_) * 2 *
        (to_double(rows_.extent(1) * plan.column_bands) + to_double(columns_.extent(1) * plan.row_bands));
    double const memory = bytes / (share_of_memory * gpu_.memory_bytes_per_second);
    double const partials =
        to_double(plan.sums()) * blocks * 4 * 2 / (share_of_sums * gpu_.memory_bytes_per_second);
    return launches_seconds + partials + std::max(compute, memory) + overlap * std::min(compute, memory);
  }

  Gpu const& gpu_;
  bool is_emulated_;
  Index pixels_;
  TensorDescription rows_, columns_;
  WgradPointwisePlan best_;
};

std::string print_operand(WgradPointwiseOperand const& operand) {
  return fmt::format("WgradPointwiseOperand{{{}, {}, {}}}", operand.channels, operand.width,
                     operand.contiguous);
}

}  // namespace

WgradPointwisePlan wgrad_pointwise_plan(Problem const& problem, Device const& device) {
  WgradPointwisePlan plan;
  plan.refusal = wgrad_pointwise_violation(problem, device);
  return plan.refusal.empty() ? WgradPointwiseSearch(flattened(problem), device).best() : plan;
}

std::string WgradPointwiseTraits::print() const {
  return fmt::format(
      "WgradPointwiseTraits<WgradPointwiseShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}, {}, {}, {},\n{},\n{}>",
      print_operand(shape.rows), print_operand(shape.columns), shape.row_fragments, shape.column_fragments,
      shape.warps_of_rows, shape.warps_of_columns, shape.warps_of_depth, shape.run, shape.stages,
      shape.blocks, shape.sum_slices, shape.early, fixed, swapped, name_of(type), epilogue, destination);
}

program::Program wgrad_pointwise_program(Plan<Problem> const& plan) {
  Problem const& problem = plan.problem;
  WgradPointwisePlan const planned = wgrad_pointwise_plan(problem, plan.device);
  Problem const flat = flattened(problem);
  ConvolutionForm const form = forms_of(problem).front();
  program::Workspace workspace;
  workspace.add("partial sums", plan.recipe.product_workspace());
  ConvolutionProgram made(plan, std::move(workspace));
  bool const fixed = !made.is_emulated(), rows_are_filters = planned.rows_are_filters;
  KernelTypes const host = emulated_types(DataType::f32);
  WgradPointwiseTraits const traits{fixed ? planned.shape : emulated_wgrad_pointwise_shape(),
                                    fixed,
                                    form.image_is_a,
                                    problem.x.type,
                                    fixed ? epilogue_text(form) : host.epilogue,
                                    fixed ? destination_text(form) : host.destination};
  WgradPointwiseArguments all;
  all.rows.pixel_stride = to_int((rows_are_filters ? flat.y : flat.x).layout.stride[3]);
  all.columns.pixel_stride = to_int((rows_are_filters ? flat.x : flat.y).layout.stride[3]);
  all.pixels = to_int(flat.x.extent(3));
  all.blocks = to_int(planned.blocks);
  all.row_bands = to_int(planned.row_bands), all.column_bands = to_int(planned.column_bands);
  all.rows_are_filters = rows_are_filters;
  all.channel_number = to_int(tap_digit(form, 'c').number);
  all.shape = planned.shape;
  auto const threads = static_cast<unsigned>(planned.shape.threads());
  program::KernelSpec kernel{
      .headers = {"conv/pointwise/wgrad_pointwise_sum.h"},
      .entry = "wgrad_pointwise_kernel",
      .traits = traits.print(),
      .asserted = {{"ComposedTraits::threads", threads},
                   {"sizeof(ComposedTraits::SumStorage)", pointwise_sum_threads * sizeof(float)}},
      .starts_early = planned.shape.early,
      .threads = threads,
      .shared_bytes = static_cast<unsigned>(planned.shape.shared_bytes())};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = WgradPointwiseParameters<Epilogue, Destination>;
    std::size_t const sums = made.add_kernel<Parameters>(kernel, form);
    kernel.entry = "wgrad_pointwise_sum_kernel";
    kernel.threads = pointwise_sum_threads;
    kernel.shared_bytes = pointwise_sum_threads * sizeof(float);
    std::size_t const last = made.add_kernel<Parameters>(kernel, form);
    auto const fill = [all, form, rows_are_filters, x = made.image, dy = made.filter](program::Run const& run,
                                                                                      Parameters& to) {
      to.all = all;
      to.all.rows.data = (rows_are_filters ? dy : x).of(run);
      to.all.columns.data = (rows_are_filters ? x : dy).of(run);
      to.all.partials = reinterpret_cast<float*>(run.workspace);
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    };
    made.launch<Parameters>(sums, {planned.blocks, planned.column_bands, planned.row_bands}, fill);
    made.launch<Parameters>(
        last, {ceiling_divide(planned.sums(), Index{pointwise_sum_threads} / planned.shape.sum_slices)},
        fill);
  });
  return std::move(made).finish();
}

Offer<Problem> wgrad_pointwise(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!offer.refusal.empty()) return offer;
  WgradPointwisePlan const plan = wgrad_pointwise_plan(problem, device);
  offer.refusal = plan.refusal;
  if (!offer.refusal.empty()) return offer;
  offer.workspace_bytes = static_cast<std::size_t>(plan.sums() * plan.blocks) * sizeof(float);
  WgradPointwiseShape const& shape = plan.shape;
  offer.recipe.algorithm = ConvolutionAlgorithm::wgrad_pointwise;
  offer.recipe.product = product_recipe(forms_of(problem).front());
  offer.recipe.product.policy.multiply = Multiply::mma;
  offer.recipe.product.partial_bytes = offer.workspace_bytes;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds = plan.seconds;
  offer.text = fmt::format(
      "mma, {} {} by {} {} per block, {}x{}x{} warps of {}x{} fragments, {} pixels at a time, {} stages, {} bytes of "
      "shared memory, {} blocks per multiprocessor, sums of {} blocks added in a fixed order",
      shape.rows.width, plan.rows_are_filters ? "filters" : "channels", shape.columns.width,
      plan.rows_are_filters ? "channels" : "filters", shape.warps_of_rows, shape.warps_of_columns,
      shape.warps_of_depth, shape.row_fragments, shape.column_fragments, shape.pixels(), shape.stages,
      shape.shared_bytes(), shape.blocks, plan.blocks);
  return offer;
}

}  // namespace cosmati::plan
