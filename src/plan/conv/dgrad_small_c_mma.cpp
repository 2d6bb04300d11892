// Shape choice, predicted time and program of dgrad_small_c on tensor cores.
#include "src/plan/conv/dgrad_small_c_mma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <variant>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int pack_bytes = 32;

CellAxis cell_axis(Problem const& p, int i) {
  return {to_int(p.stride[i]), to_int(p.w.extent(2 + i)), to_int(p.dilation[i]), to_int(p.pad_begin[i]), 1};
}

std::string cell_violation(Problem const& p, Device const& device) {
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  DataType const type = p.y.type;
  if (p.direction != ConvolutionDirection::data) return "computes only a data gradient";
  if (p.groups != 1) return fmt::format("{} groups; tensor cores sum over all channels of dy", p.groups);
  if (p.x.extent(1) > CellShape::max_channels)
    return fmt::format("{} channels of dx; an mma has {} columns", p.x.extent(1), CellShape::max_channels);
  if (type != p.w.type || size_of(type) < 2 || !mma_takes(type, type, accumulator_type(type, type)))
    return fmt::format("both factors must be tf32, f16 or bf16, not {} and {}", name_of(type),
                       name_of(p.w.type));
  if (accumulator_type(type, type) != DataType::f32) return "sums must be f32";
  if (std::string sentence = mma_device_violation(type, device.gpu); !sentence.empty()) return sentence;
  if (device.backend == Backend::emulator &&
      !emulator::multiplies_convolution(MainLoop::multistage, Multiply::mma, type, type))
    return fmt::format("the emulator has this kernel for f16 and tf32, not for {}", name_of(type));
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  Index const of_unit = max_vector_bytes / size_of(type);
  if (p.y.extent(1) > 1 && p.y.layout.stride[1] != 1)
    return fmt::format("dy: its channels are {} elements apart; copies of 16 bytes require 1 (channels last)",
                       p.y.layout.stride[1]);
  if (p.y.alignment % max_vector_bytes != 0 || p.y.extent(1) % of_unit != 0 ||
      !pixels_begin_at(p.y, max_vector_bytes))
    return fmt::format("dy: its channels are not in units of 16 bytes ({} elements)", of_unit);
  for (int d : {2, 3})
    if (p.y.layout.stride[d] * p.y.extent(d) > max_int / 2 || p.y.layout.stride[d] < 0)
      return fmt::format(
          "dy: rows or columns are {} elements apart; offsets within an image must fit in 31 bits",
          p.y.layout.stride[d]);
  if (p.x.extent(0) * p.x.extent(2) * p.x.extent(3) > max_int) return "too many pixels: split the batch";
  return {};
}

// The number of products of a cell: (position of the window, group) pairs that a tap connects.
int reached(CellShape const& shape) {
  int products = 0;
  for (int group = 0; group < shape.groups(); ++group)
    for (int r = 0; r < shape.rows.reach(); ++r)
      for (int s = 0; s < shape.columns.reach(); ++s) products += shape.tap(group, r, s) >= 0 ? 1 : 0;
  return products;
}

// The number of cell tiles of an image, down and across.
struct CellTiles {
  Index down, across;
};
CellTiles cell_tiles(Problem const& p, CellShape const& shape) {
  return {ceiling_divide(ceiling_divide(p.x.extent(2), shape.rows.places()), shape.down),
          ceiling_divide(ceiling_divide(p.x.extent(3), shape.columns.places()), shape.across)};
}

class CellSearch {
 public:
  CellSearch(Problem const& problem, Device const& device)
      : problem_(problem), gpu_(device.gpu), is_emulated_(device.backend == Backend::emulator) {
    base_.rows = cell_axis(problem, 0);
    base_.columns = cell_axis(problem, 1);
    base_.channels = to_int(problem.x.extent(1));
    base_.channels_together = whole_gradient_form(problem).image_is_a;
    steps_ = ceiling_divide(problem.y.extent(1) * size_of(problem.y.type), pack_bytes);
  }

  CellPlan best() {
    best_.refusal = "no tile fits in registers and shared memory";
    for (int const cells : {1, 2, 4})
      for (int const packs : {4, 2, 8, 1})
        for (int const warps : {4, 8, unfixed_cell_warps})
          for (int const fragments : {1, 2, 4}) {
            CellShape shape = base_;
            shape.rows.cells = cells;
            shape.packs = packs, shape.warps = warps, shape.fragments = fragments;
            if (packs > 1 && packs / 2 >= steps_) continue;  // half as many suffice
            if (packs == 1 && steps_ > 1) continue;          // would read half of each 64 bytes of memory
            try_tiles(shape);
          }
    return best_;
  }

 private:
  void try_tiles(CellShape shape) {
    Index const width = ceiling_divide(problem_.x.extent(3), shape.columns.places()),
                height = ceiling_divide(problem_.x.extent(2), shape.rows.places());
    int const cells = shape.warps * shape.fragments * 16;
    if (!is_emulated_ && shape.warps == unfixed_cell_warps) return;
    if (is_emulated_) {
      if (shape.warps != unfixed_cell_warps || shape.fragments != 1 || shape.packs > 2) return;
      if (shape.groups() > unfixed_cell_groups) return;
    }
    for (int of_row = 1; of_row <= 16; ++of_row) {
      Index const across = ceiling_divide(width, of_row);
      if (across > cells) continue;
      shape.across = to_int(across);
      shape.down = to_int(std::min<Index>(height, cells / across));
      try_shape(shape);
      if (across <= 8) break;
    }
  }

  void try_shape(CellShape shape) {
    constexpr int max_code = 800, max_registers = 200;
    int const chunks = to_int(ceiling_divide(steps_, shape.packs));
    int const code = reached(shape) * shape.fragments;
    int const sums = shape.fragments * shape.groups() * 4;
    int const kept = shape.keeps_taps() ? 2 * shape.taps() : 8;
    int const registers = (48 + sums + kept + 8 * shape.fragments + 7) / 8 * 8;
    int const bytes = shape.shared_bytes(chunks);
    if (code > max_code || registers > max_registers || bytes > gpu_.shared_bytes_per_block) return;
    shape.blocks = resident_blocks(gpu_, shape.threads(), registers, bytes);
    if (shape.blocks < 1) return;
    CellTiles const tiles = cell_tiles(problem_, shape);
    Index const all = problem_.x.extent(0) * tiles.down * tiles.across;
    if (all > max_int) return;
    double const seconds = predicted(shape, chunks, static_cast<double>(all));
    if (best_.refusal.empty() && seconds >= best_.seconds) return;
    best_ = {{}, shape, chunks, bytes, all, std::min(all, resident(shape)), seconds};
  }

  Index resident(CellShape const& shape) const {
    return Index{shape.blocks} * (is_emulated_ ? 2 : gpu_.multiprocessors);
  }

  // Predicted seconds: limited by tensor cores, shared memory, issue slots, latency or memory. Fitted to 132
  // shapes without merged columns for six layers on an H100, which it predicts within 10 %
  // (docs/decisions/0019).
  double predicted(CellShape const& shape, int chunks, double tiles) const {
    constexpr double launch_seconds = 3e-6, mma_clocks = 3.0, matrices_clocks = 5.4, fragment_clocks = 1.9,
                     chunk_clocks = 1200, tile_clocks = 2600;
    double const packs = chunks * shape.packs, fragments = shape.warps * shape.fragments;
    double const positions = shape.rows.reach() * shape.columns.reach(), taps = reached(shape);
    double const pieces = shape.halo() * packs * 2, results = shape.cells() * shape.places();
    double const read = shape.keeps_taps() ? shape.taps() : taps;
    double const tensor = fragments * taps * packs * mma_clocks;
    double const shared =
        packs * (fragments * positions * matrices_clocks + shape.warps * read * fragment_clocks) +
        pieces / 8 + results * shape.channels / 8;
    double const issue = (packs * (fragments * positions + read * shape.warps + taps * fragments) +
                          pieces * 22 / 32 + results * (70 + 35 * shape.channels) / 32) /
                         4;
    // A warp waits for its own fragments and products, and a block for copies and barriers.
    double const alone =
        packs * taps * (8.5 * shape.fragments + 4) + tile_clocks + chunks * chunk_clocks + issue;
    double const clocks =
        std::max({tensor, shared, issue, alone / shape.blocks}) + 0.1 * (tensor + shared + issue);
    double const per_multiprocessor = std::ceil(tiles / static_cast<double>(resident(shape))) * shape.blocks;
    double const compute = per_multiprocessor * clocks / gpu_.clock_hertz;
    double const overlap =
        static_cast<double>(shape.halo()) / (shape.cells() * shape.rows.cells * shape.columns.cells) - 1;
    double const bytes =
        static_cast<double>(problem_.y.layout.size() * size_of(problem_.y.type)) * (1 + 0.25 * overlap) +
        static_cast<double>(problem_.x.layout.size() * size_of(problem_.x.type));
    double const memory = bytes / (0.8 * gpu_.memory_bytes_per_second);
    double const filter = shape.filter_bytes(chunks) / 4.0 / shape.threads() / 8 * 700 / gpu_.clock_hertz;
    return launch_seconds + filter + std::max(compute, memory) + 0.15 * std::min(compute, memory);
  }

  Problem const& problem_;
  Gpu const& gpu_;
  bool is_emulated_;
  CellShape base_;
  Index steps_ = 1;  // of 32 bytes
  CellPlan best_;
};

// Returns the arguments without pointers.
CellArguments arguments_of(Problem const& p, CellPlan const& plan, ConvolutionForm const& form) {
  CellArguments window;
  window.inputs = to_int(p.y.extent(1));
  window.chunks = plan.chunks;
  window.image_stride = stride_of(p.y, 0);
  window.image_row = to_int(stride_of(p.y, 2));
  window.image_column = to_int(stride_of(p.y, 3));
  window.filter_input = stride_of(p.w, 0), window.filter_output = stride_of(p.w, 1);
  window.filter_row = stride_of(p.w, 2), window.filter_column = stride_of(p.w, 3);
  window.image_rows = to_int(p.y.extent(2)), window.image_columns = to_int(p.y.extent(3));
  window.height = to_int(p.x.extent(2)), window.width = to_int(p.x.extent(3));
  set_pixel_numbers(window, form);
  window.swapped = form.swapped;
  CellTiles const tiles = cell_tiles(p, plan.shape);
  window.tiles_down = Divisor(tiles.down), window.tiles_across = Divisor(tiles.across);
  window.tiles = to_int(plan.tiles);
  window.shape = plan.shape;
  return window;
}

}  // namespace

bool uses_cells(ConvolutionRecipe const& recipe) {
  return recipe.is_dgrad_small_c() && std::holds_alternative<std::monostate>(recipe.own);
}

CellPlan cell_plan(Problem const& problem, Device const& device) {
  CellPlan plan;
  plan.refusal = cell_violation(problem, device);
  return plan.refusal.empty() ? CellSearch(problem, device).best() : plan;
}

std::string DgradSmallCMmaTraits::print() const {
  auto const axis = [](CellAxis const& of) {
    return fmt::format("CellAxis{{{}, {}, {}, {}, {}}}", of.stride, of.taps, of.dilation, of.pad, of.cells);
  };
  return fmt::format(
      "DgradSmallCMmaTraits<CellShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}, {}, {},\n{},\n{}>",
      axis(shape.rows), axis(shape.columns), shape.channels, shape.packs, shape.down, shape.across,
      shape.warps, shape.fragments, shape.blocks, shape.channels_together, fixed, name_of(type), epilogue,
      destination);
}

program::Program cell_program(Plan<Problem> const& plan) {
  CellPlan const cells = cell_plan(plan.problem, plan.device);
  CellShape const& shape = cells.shape;
  ConvolutionForm form = whole_gradient_form(plan.problem);
  cap_widths(form, shape.channels_together ? shape.channels : 1);
  ConvolutionProgram made(plan, {});
  bool const fixed = !made.is_emulated();
  auto const threads = static_cast<unsigned>(shape.threads());
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = CellParameters<Epilogue, Destination>;
    KernelTypes const host = emulated_types(DataType::f32);
    DgradSmallCMmaTraits const traits{fixed ? shape : emulated_cell_shape(), fixed, plan.problem.y.type,
                                      fixed ? epilogue_text(form) : host.epilogue,
                                      fixed ? destination_text(form) : host.destination};
    std::size_t const kernel =
        made.add_kernel<Parameters>({.headers = {"conv/dgrad_small_c_mma.h"},
                                     .entry = "dgrad_small_c_mma_kernel",
                                     .traits = traits.print(),
                                     .asserted = {{"ComposedTraits::threads", threads}},
                                     .threads = threads,
                                     .shared_bytes = static_cast<unsigned>(cells.shared_bytes)},
                                    form);
    made.launch<Parameters>(kernel, {cells.blocks},
                            made.window_writer(arguments_of(plan.problem, cells, form), form));
  });
  return std::move(made).finish();
}

Offer<Problem> dgrad_small_c_mma(Problem const& problem, Device const& device, PlanOptions const&) {
  Offer<Problem> offer;
  CellPlan const plan = cell_plan(problem, device);
  offer.refusal = plan.refusal;
  if (!offer.refusal.empty()) return offer;
  CellShape const& shape = plan.shape;
  ConvolutionForm const form = whole_gradient_form(problem);
  offer.recipe.algorithm = ConvolutionAlgorithm::dgrad_small_c;
  offer.recipe.product = product_recipe(form);
  offer.recipe.product.policy.multiply = Multiply::mma;
  offer.recipe.product.predicted_seconds = offer.predicted_seconds = plan.seconds;
  offer.text = fmt::format(
      "mma, {}x{} cells of {}x{} pixels and {} channels, {} warps of {} fragments, {} bytes of dy's channels "
      "at a time, {} bytes of shared memory, {} blocks per multiprocessor, 1 launch",
      shape.down, shape.across, shape.rows.places(), shape.columns.places(), shape.channels, shape.warps,
      shape.fragments, shape.packs * pack_bytes, plan.shared_bytes, shape.blocks);
  return offer;
}

}  // namespace cosmati::plan
