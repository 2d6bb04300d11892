// Tile choice and predicted time of dgrad_small_c.
#include "src/plan/conv/dgrad_small_c.h"
#include "src/plan/best_offer.h"

#include <fmt/format.h>
#include <cmath>

#include <algorithm>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/dgrad_small_c_mma.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/sliding.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

DgradSmallCAxis dgrad_small_c_axis(Problem const& p, int i) {
  return {to_int(p.stride[i]), to_int(p.w.extent(2 + i)), to_int(p.dilation[i]),
          to_int(p.pad_begin[i] % p.stride[i])};
}

Index largest_offset(TensorDescription const& tensor, int from_dimension) {
  Index offset = 0;
  for (int d = from_dimension; d < 4; ++d)
    offset += std::max<Index>(0, tensor.extent(d) - 1) * std::abs(tensor.layout.stride[d]);
  return offset;
}

// Registers of a thread, in 4-byte words.
int registers_of(DgradSmallCShape const& shape, int value_bytes) {
  DgradSmallCBound const bound = bound_of(shape);
  int const own = shape.parts > 1 ? 34 : 26;  // for addresses and counters, as compiled
  int const kept = shape.sums() + bound.value_rows * bound.value_columns + bound.weights;
  return (kept * value_bytes / 4 + own + 7) / 8 * 8;
}

std::string dgrad_small_c_violation(Problem const& problem, Device const& device,
                                    PlanOptions const& options) {
  std::string sentence = problem_violation(problem, device.backend);
  if (!sentence.empty()) return sentence;
  if (problem.direction != ConvolutionDirection::data)
    return "merges the phases of a strided data gradient; other directions have none";
  if (problem.stride[0] * problem.stride[1] == 1 && options.kernel != "dgrad_small_c")
    return "strides of 1 leave no phases to merge; --kernel dgrad_small_c computes such a gradient anyway";
  Index const pixels = problem.x.extent(0) * problem.x.extent(2) * problem.x.extent(3);
  if (pixels > max_int) return fmt::format("{} pixels of dx; at most {}: split the batch", pixels, max_int);
  for (auto const& [name, span] :
       {std::pair("dy", largest_offset(problem.y, 1)), std::pair("the filter", largest_offset(problem.w, 0))})
    if (span > max_int)
      return fmt::format("{}: {} elements apart within an image; at most {}", name, span, max_int);
  Index const taps = problem.w.extent(2) * problem.w.extent(3);
  constexpr Index max_taps = 256;  // the code is unrolled over all taps
  if (taps > max_taps)
    return fmt::format("{}x{} taps are fully unrolled; at most {}", problem.w.extent(2), problem.w.extent(3),
                       max_taps);
  return {};
}

// Which results of a thread are contiguous, in the order of m and n.
DgradSmallCRun run_of(ConvolutionForm const& form) {
  if (form.image_is_a) return DgradSmallCRun::channels;
  return find_digit('q', form.image_outer(), form.image().arguments.outer).number == 1
             ? DgradSmallCRun::columns
             : DgradSmallCRun::none;
}

// How often a 32-byte sector is transferred because it contains channels of several groups.
double sectors_per_run(TensorDescription const& images, double channels, Index groups) {
  bool const together = images.layout.stride[1] == 1 && images.layout.stride[3] != 1;
  return together && groups > 1 ? std::max(1.0, 32 / (channels * size_of(images.type))) : 1;
}

// Predicted seconds: limited by multiply-adds and shared memory bandwidth or, with few warps, by latency.
double predicted(Problem const& problem, DgradSmallCShape const& shape, DgradSmallCGrid const& grid,
                 DataType sum, Gpu const& gpu) {
  constexpr double launch_seconds = 3e-6, fill_seconds = 1e-6, load_clocks = 1500, stall_clocks = 60;
  constexpr double slots_of_result = 20;
  DgradSmallCBound const bound = bound_of(shape);
  double const taps = shape.rows.taps * shape.columns.taps, words = size_of(sum) / 4.0;
  double const rate = sum == DataType::f64   ? gpu.fma_f64
                      : sum == DataType::s32 ? gpu.fma_f32 / 2.0
                                             : gpu.fma_f32;
  double const products = shape.cells * taps * shape.channels;
  double const reads = bound.value_rows * bound.value_columns + shape.rows.taps * bound.weights * words / 4;
  double const warps = shape.threads() / 32.0;
  double const inputs =
      static_cast<double>(std::max<Index>(1, problem.w.extent(0) / std::max<Index>(1, problem.groups)));
  double const mine = inputs / shape.parts;  // channels of dy per warp
  double const results = static_cast<double>(shape.cells) * shape.rows.stride * shape.columns.stride *
                         shape.channels * shape.threads() / shape.parts;  // per block
  double const elements = inputs * (shape.halo() / shape.vector * 6.0 + taps * shape.channels * 25.0) / 32 +
                          results * slots_of_result / 32;
  double const issue = (warps * mine * (products * 128 / rate + reads + 8) + elements) / 4;
  double const shared = warps * mine * reads * words;
  double const alone = mine * (1.3 * products * 128 / rate + 2 * reads + stall_clocks);
  double const phases = std::ceil(inputs / shape.inputs);
  // Measured on an H200: the shared memory reads of a warp overlap its own multiplies, but not those of other
  // warps.
  auto const clocks = [&](double together) {
    return std::max(together * (issue + shared), alone) + phases * load_clocks / std::min(2.0, together);
  };
  double const blocks = static_cast<double>(grid.x * grid.y * grid.z);
  double const places = static_cast<double>(gpu.multiprocessors) * shape.blocks;
  double const waves = std::floor(blocks / places);
  double const rest = std::ceil((blocks - waves * places) / gpu.multiprocessors);
  double const multiply = (waves * clocks(shape.blocks) + (rest > 0 ? clocks(rest) : 0)) / gpu.clock_hertz;
  double const bytes =
      static_cast<double>(problem.y.layout.span() * grid.y) * size_of(problem.y.type) *
          sectors_per_run(problem.y, inputs, problem.groups) +
      static_cast<double>(problem.x.layout.span()) * size_of(problem.x.type) *
          sectors_per_run(problem.x, static_cast<double>(problem.w.extent(1)), problem.groups);
  return launch_seconds + fill_seconds + std::max(multiply, bytes / (0.7 * gpu.memory_bytes_per_second));
}

// Chooses how channels of dy are loaded.
void set_access(DgradSmallCShape& shape, Problem const& problem, DataType sum, Device const& device) {
  TensorDescription const& dy = problem.y;
  int const size = size_of(dy.type);
  Index const inputs = problem.w.extent(0) / std::max<Index>(1, problem.groups);
  shape.async = features_of(device.gpu).async_copy && dy.type == sum && size >= 4;
  bool const together = dy.layout.stride[1] == 1 && dy.layout.stride[3] != 1;
  if (device.backend == Backend::emulator || !together) return;
  auto const whole = [&](int vector) {
    return inputs % vector == 0 && std::max(dy.alignment, size) % (vector * size) == 0 &&
           pixels_begin_at(dy, vector * size);
  };
  while (2 * shape.vector * size <= 16 && whole(2 * shape.vector)) shape.vector *= 2;
  if (shape.vector > 1) shape.async = false;
  shape.pieces = static_cast<int>(
      std::clamp<Index>(32 / (shape.vector * size), 1, std::max<Index>(1, inputs / shape.vector)));
}

class TileSearch {
 public:
  TileSearch(Problem const& problem, Device const& device, ConvolutionForm const& form)
      : problem_(problem), device_(device), form_(form), sum_(form.sum) {
    base_.rows = dgrad_small_c_axis(problem, 0);
    base_.columns = dgrad_small_c_axis(problem, 1);
    base_.run = run_of(form);
    set_access(base_, problem, sum_, device);
  }

  Offer<Problem> best() {
    Index const outputs = std::max<Index>(1, problem_.w.extent(1));
    for (int channels : {1, 2, 3, 4, 6, 8})
      if (channels <= outputs)
        for (int cells : {8, 4, 2, 1})
          for (int across : {32, 16, 8})
            for (int split : {1, 2, 4})
              for (int inputs : {16, 64, 8, 32, 4, 2, 1}) {
                DgradSmallCShape shape = base_;
                shape.channels = channels;
                shape.cells = cells;
                shape.threads_across = across;
                shape.threads_down = 128 / across;
                shape.parts = split;
                shape.inputs = inputs;
                try_shape(shape);
              }
    return std::move(best_).result();
  }

 private:
  bool emulated() const { return device_.backend == Backend::emulator; }

  void try_shape(DgradSmallCShape shape) {
    if (emulated()) {
      if (shape.cells > 2 || shape.parts != 2 || shape.threads_across != 8 || shape.inputs > 4) return;
      shape.threads_down = unfixed_dgrad_small_c_threads / (shape.threads_across * shape.parts);
      if (!is_within(bound_of(shape), largest_dgrad_small_c_bound))
        return refuse(
            shape,
            fmt::format("the emulator's kernel supports at most {}x{} phases and windows of {} pixels",
                        largest_dgrad_small_c_bound.stride_rows, largest_dgrad_small_c_bound.stride_columns,
                        largest_dgrad_small_c_bound.value_columns));
    }
    int const bytes_of_value = size_of(sum_);
    constexpr int max_registers = 232;
    int const registers = registers_of(shape, bytes_of_value);
    int const room = std::min(max_registers, 65536 / shape.threads());
    if (registers > room)
      return refuse(
          shape,
          fmt::format(
              "the smallest tile needs about {} registers per thread for accumulators and operands; at most "
              "{}",
              registers, room));
    constexpr int max_code = 2400;  // unrolled multiply-adds
    int const code = shape.cells * shape.rows.taps * shape.columns.taps * shape.channels;
    if (code > max_code)
      return refuse(shape,
                    fmt::format("the unrolled code would have {} multiply-adds; at most {}", code, max_code));
    Index const inputs = std::max<Index>(1, problem_.w.extent(0) / std::max<Index>(1, problem_.groups));
    if (shape.inputs > shape.vector * shape.pieces && shape.inputs / 2 >= inputs)
      return;  // half as many channels suffice
    if (shape.inputs % (shape.vector * shape.pieces) != 0) return;
    int const bytes = shape.shared_values() * bytes_of_value;
    Gpu const& gpu = device_.gpu;
    if (bytes > gpu.shared_bytes_per_block)
      return refuse(
          shape, fmt::format("the smallest tile needs {} bytes of shared memory; {} has {} per block", bytes,
                             gpu.name, gpu.shared_bytes_per_block));
    constexpr int reserved_bytes = 1024;  // reserved by the system for each block
    int const by_registers = std::max(1, 65536 / (shape.threads() * std::max(registers, 64)));
    shape.blocks =
        std::max(1, std::min({by_registers, gpu.shared_bytes_per_multiprocessor / (bytes + reserved_bytes), 8,
                              gpu.threads_per_multiprocessor / shape.threads()}));
    DgradSmallCGrid const grid = dgrad_small_c_grid(problem_, shape);
    if (grid.x > max_int || grid.y > 65535)
      return refuse(shape, fmt::format("{} tiles for {} blocks of channels; a grid has at most {} and 65535",
                                       grid.x, grid.y, max_int));
    double const seconds = predicted(problem_, shape, grid, sum_, gpu);
    if (best_.takes(seconds)) take(shape, bytes, seconds);
  }

  void take(DgradSmallCShape const& shape, int bytes, double seconds) {
    ConvolutionRecipe recipe;
    recipe.algorithm = ConvolutionAlgorithm::dgrad_small_c;
    recipe.product = product_recipe(form_);
    recipe.product.predicted_seconds = seconds;
    recipe.own = DgradSmallCRecipe{shape, bytes};
    std::string text =
        fmt::format("{}x{} cells of {}x{} pixels and {} channels, thread {}x1, {} channels of dy at a time",
                    shape.cells_down(), shape.threads_across, shape.rows.stride, shape.columns.stride,
                    shape.channels, shape.cells, shape.inputs);
    if (shape.parts > 1) text += fmt::format(" in {} parts", shape.parts);
    text += fmt::format(", {} bytes of shared memory, {} blocks per multiprocessor, 1 launch", bytes,
                        shape.blocks);
    std::size_t const workspace = emulated() ? emulator::widening_bytes(problem_, recipe) : 0;
    best_.take({{}, workspace, seconds, recipe, std::move(text)});
  }

  // Reports the reason only for the smallest tile, where it rules out the algorithm.
  void refuse(DgradSmallCShape const& shape, std::string sentence) {
    if (shape.channels == 1 && shape.cells == 1) best_.refuse(std::move(sentence));
  }

  Problem const& problem_;
  Device const& device_;
  ConvolutionForm const& form_;
  DataType sum_;
  DgradSmallCShape base_;
  BestOffer<Problem> best_;
};

}  // namespace

void cap_widths(ConvolutionForm& form, int run) {
  int const maximum = (run & (run - 1)) == 0 ? run : 1;
  form.d.width = std::min(form.d.width, maximum);
  for (DigitForm& operand : form.operands) operand.width = std::min(operand.width, maximum);
  for (DigitForm& store : form.stores) store.width = std::min(store.width, maximum);
}

DgradSmallCForm dgrad_small_c_form(Problem const& p, DgradSmallCShape const& shape) {
  DgradSmallCForm gradient;
  gradient.form = whole_gradient_form(p);
  ConvolutionForm& form = gradient.form;
  cap_widths(form, shape.run_length());
  DgradSmallCArguments& window = gradient.window;
  window.shape = shape;
  Index const groups = std::max<Index>(1, p.groups);
  auto const stride = [](TensorDescription const& tensor, int d) { return tensor.layout.stride[d]; };
  window.inputs = to_int(p.w.extent(0) / groups);
  window.outputs = to_int(p.w.extent(1));
  window.image_stride = stride(p.y, 0);
  window.image_group = window.inputs * stride(p.y, 1);
  window.filter_group = window.inputs * stride(p.w, 0);
  window.image_input = to_int(stride(p.y, 1));
  window.image_row = to_int(stride(p.y, 2));
  window.image_column = to_int(stride(p.y, 3));
  window.filter_input = to_int(stride(p.w, 0));
  window.filter_output = to_int(stride(p.w, 1));
  window.filter_row = to_int(stride(p.w, 2));
  window.filter_column = to_int(stride(p.w, 3));
  window.image_rows = to_int(p.y.extent(2));
  window.image_columns = to_int(p.y.extent(3));
  window.top = shape.rows.lowest() + to_int(p.pad_begin[0] / p.stride[0]);
  window.left = shape.columns.lowest() + to_int(p.pad_begin[1] / p.stride[1]);
  window.height = to_int(p.x.extent(2));
  window.width = to_int(p.x.extent(3));
  set_pixel_numbers(window, form);
  window.swapped = form.swapped;
  auto const tiles = [](Index extent, Index step, Index of) {
    return Divisor(std::max<Index>(1, ceiling_divide(ceiling_divide(extent, step), of)));
  };
  window.tiles_down = tiles(p.x.extent(2), shape.rows.stride, shape.cells_down());
  window.tiles_across = tiles(p.x.extent(3), shape.columns.stride, shape.threads_across);
  return gradient;
}

DgradSmallCGrid dgrad_small_c_grid(Problem const& p, DgradSmallCShape const& shape) {
  Index const down = ceiling_divide(ceiling_divide(p.x.extent(2), shape.rows.stride), shape.cells_down()),
              across =
                  ceiling_divide(ceiling_divide(p.x.extent(3), shape.columns.stride), shape.threads_across);
  return {p.x.extent(0) * down * across, ceiling_divide(p.w.extent(1), shape.channels), p.groups};
}

std::string traits_of(DgradSmallCPolicy const& policy, KernelTypes const& types) {
  DgradSmallCShape const& shape = policy.shape;
  auto const axis = [](DgradSmallCAxis const& of) {
    return fmt::format("{{.stride = {}, .taps = {}, .dilation = {}, .pad = {}}}", of.stride, of.taps,
                       of.dilation, of.pad);
  };
  char const* const run = shape.run == DgradSmallCRun::columns    ? "columns"
                          : shape.run == DgradSmallCRun::channels ? "channels"
                                                                  : "none";
  return fmt::format(
      "DgradSmallCTraits<DgradSmallCPolicy{{.shape = {{\n"
      ".rows = {},\n.columns = {},\n"
      ".channels = {}, .cells = {}, .threads_down = {}, .threads_across = {}, .parts = {}, .inputs = {},\n"
      ".blocks = {}, .vector = {}, .pieces = {}, .async = {}, .run = DgradSmallCRun::{}}},\n"
      ".fixed = {}}},\n{}>",
      axis(shape.rows), axis(shape.columns), shape.channels, shape.cells, shape.threads_down,
      shape.threads_across, shape.parts, shape.inputs, shape.blocks, shape.vector, shape.pieces, shape.async,
      run, policy.fixed, types.print());
}

program::Program dgrad_small_c_program(Plan<Problem> const& plan) {
  if (uses_cells(plan.recipe)) return cell_program(plan);
  auto const& recipe = std::get<DgradSmallCRecipe>(plan.recipe.own);
  DgradSmallCShape const& shape = recipe.shape;
  DgradSmallCForm const gradient = dgrad_small_c_form(plan.problem, shape);
  DgradSmallCGrid const grid = dgrad_small_c_grid(plan.problem, shape);
  ConvolutionForm const& form = gradient.form;
  ConvolutionProgram made(plan);
  bool const fixed = !made.is_emulated();
  auto const threads = static_cast<unsigned>(shape.threads());
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = DgradSmallCParameters<Epilogue, Destination>;
    std::size_t const kernel = made.add_kernel<Parameters>(
        {.headers = {"conv/dgrad_small_c.h"},
         .entry = "dgrad_small_c_kernel",
         .traits = traits_of({fixed ? shape : emulated_dgrad_small_c_shape(), fixed}, made.types_of(form)),
         .asserted = {{"ComposedTraits::threads", threads}},
         .threads = threads,
         .shared_bytes = static_cast<unsigned>(recipe.shared_bytes)},
        form);
    if (form.rows() == 0 || form.columns() == 0) return;
    made.launch_groups<Parameters>(kernel, {grid.x, grid.y, grid.z},
                                   [write = made.window_writer(gradient.window, gradient.form)](
                                       program::Run const& run, Index first, Parameters& to) {
                                     write(run, to);
                                     to.window.first_group = first;
                                   });
  });
  return std::move(made).finish();
}

Offer<Problem> dgrad_small_c(Problem const& problem, Device const& device, PlanOptions const& options) {
  PolicyRequest but_multiply = options.policy;
  but_multiply.multiply.reset();
  std::optional<Multiply> const multiply = options.policy.multiply;
  Offer<Problem> offer;
  if (!but_multiply.empty() || (multiply && multiply != Multiply::mma && multiply != Multiply::fma)) {
    offer.refusal = "supports only the policies multiply=mma and multiply=fma; --policy " +
                    options.policy.text + " was requested";
    return offer;
  }
  Offer<Problem> const cells = dgrad_small_c_mma(problem, device, options);
  if (multiply == Multiply::mma) return cells;
  offer.refusal = dgrad_small_c_violation(problem, device, options);
  if (offer.refusal.empty()) offer = TileSearch(problem, device, whole_gradient_form(problem)).best();
  if (multiply == Multiply::fma || !cells.refusal.empty()) return offer;
  return !offer.refusal.empty() || cells.predicted_seconds < offer.predicted_seconds ? cells : offer;
}

}  // namespace cosmati::plan
