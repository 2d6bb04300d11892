// Which convolutions image_windows supports, its shape, the predicted time, and its program.
#include "src/plan/conv/windows/image_windows.h"

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

constexpr int max_patch_rows = 256 / ImageWindowsShape::patch_columns;

bool is_data(Problem const& p) { return p.direction == ConvolutionDirection::data; }

std::string image_windows_violation(Problem const& p, Device const& device, PlanOptions const& options) {
  if (std::string sentence = options.policy.refusal(); !sentence.empty()) return sentence;
  if (std::string sentence = problem_violation(p, device.backend); !sentence.empty()) return sentence;
  if (p.direction != ConvolutionDirection::forward && !is_data(p))
    return "computes forward convolutions and data gradients";
  if (p.groups != 1) return fmt::format("{} groups; supported: 1", p.groups);
  if (std::string sentence = wgmma_device_violation(device.gpu); !sentence.empty()) return sentence;
  GroupedRoles const roles = grouped_roles(p);
  DataType const type = roles.image.type;
  if (p.w.type != type || (type != DataType::f16 && type != DataType::bf16))
    return fmt::format("both factors must be f16 or bf16, not {} and {}", name_of(type), name_of(p.w.type));
  if (accumulator_type(type, type) != DataType::f32) return "sums must be f32";
  if (p.w.extent(2) * p.w.extent(3) == 1) return "the filter has one tap, so no pixel is read twice";
  if (roles.outputs % 8 != 0)
    return fmt::format("{} channels of the result; supported: multiples of 8", roles.outputs);
  for (TensorDescription const* tensor : {&p.x, &p.w, &p.y})
    if (tensor->layout.size() == 0) return fmt::format("{} has no elements", to_string(*tensor));
  for (int i : {0, 1}) {
    if (p.stride[i] != 1) return fmt::format("a stride of {}; supported: 1", p.stride[i]);
    if ((p.w.extent(2 + i) - 1) * p.dilation[i] >= max_box || p.dilation[i] >= max_box)
      return fmt::format("{} taps with a dilation of {}; TMA copies at most {} elements along an axis",
                         p.w.extent(2 + i), p.dilation[i], max_box);
  }
  if (roles.result.layout.stride[1] != 1)
    return fmt::format("{}: its channels are {} elements apart; they must be contiguous",
                       to_string(roles.result), roles.result.layout.stride[1]);
  if (all_channels_form(p).swapped) return "the channels of the result are not along n of the product";
  if (roles.result.extent(0) * roles.result.extent(2) * roles.result.extent(3) > max_int / 64)
    return "too many pixels: split the batch";
  if (std::string sentence = line_boxes_violation(is_data(p) ? "dy" : "x", roles.image); !sentence.empty())
    return sentence;
  return line_boxes_violation("w", p.w);
}

// The tiles of a shape across, down and along the images, and the parts of the result's channels.
struct Tiles {
  Index across, down, images, parts, chunks;
  Tiles(GroupedRoles const& roles, ImageWindowsShape const& shape)
      : across(ceiling_divide(roles.result.extent(3), shape.across * ImageWindowsShape::patch_columns)),
        down(ceiling_divide(roles.result.extent(2), shape.down * shape.patch_rows)),
        images(roles.result.extent(0)),
        parts(ceiling_divide(roles.outputs, ImageWindowsShape::outputs)),
        chunks(ceiling_divide(roles.inputs, ImageWindowsShape::line_channels)) {}
  Index all() const { return across * down * images * parts; }
};

// The blocks of a launch. If they keep their filters, a block's tiles are a multiple of the parts apart.
Index blocks_of(Tiles const& tiles, ImageWindowsShape const& shape, Device const& device) {
  Index const resident = device.backend == Backend::emulator ? 2 : device.gpu.multiprocessors,
              blocks = std::min(tiles.all(), resident);
  return shape.keeps_filter ? blocks / tiles.parts * tiles.parts : blocks;
}

// Tries every shape; keeps the one predicted to be fastest.
class ImageWindowsSearch {
 public:
  ImageWindowsSearch(Problem const& problem, Device const& device)
      : problem_(problem), device_(device), roles_(grouped_roles(problem)) {
    base_.rows = grouped_axis(problem, 0).axis, base_.columns = grouped_axis(problem, 1).axis;
    base_.transposed = is_data(problem);
  }

  Offer<Problem> best() {
    if (device_.backend == Backend::emulator) {
      for (ImageWindowsShape const& shape : emulated_image_windows_shapes)
        if (shape.rows == base_.rows && shape.columns == base_.columns &&
            shape.transposed == base_.transposed && problem_.w.type == DataType::f16)
          try_shape(shape);
      if (!best_.found()) best_.refuse("the emulator has this kernel for few sizes of filters, in f16");
      return std::move(best_).result();
    }
    Index const height = roles_.result.extent(2);
    for (auto const& [down, across, alternates] : {std::tuple{1, 1, true},
                                                   {1, 1, false},
                                                   {1, 2, false},
                                                   {2, 1, false},
                                                   {1, 3, false},
                                                   {3, 1, false}}) {
      ImageWindowsShape shape = base_;
      shape.down = down, shape.across = across, shape.alternates = alternates;
      int last = 0;
      for (Index bands = 1; bands <= height; ++bands) {
        shape.patch_rows = to_int(ceiling_divide(height, bands * down));
        if (shape.patch_rows > max_patch_rows || shape.patch_rows == last) continue;
        if (shape.patch_rows < 4 && last > 0) break;
        last = shape.patch_rows;
        for (int const image_stages : {1, 2, 3}) try_stages(shape, image_stages);
      }
    }
    return std::move(best_).result();
  }

 private:
  // As many stages of the filter as fit.
  void try_stages(ImageWindowsShape shape, int image_stages) {
    shape.image_stages = image_stages;
    shape.keeps_filter = true, shape.filter_stages = shape.taps();
    try_shape(shape);
    shape.keeps_filter = false;
    for (int const stages : {8, 6, 4, 3, 2}) {
      shape.filter_stages = stages;
      if (fits(shape)) return try_shape(shape);
    }
    best_.refuse(fmt::format("windows of {} taps and two stages of the filter do not fit in shared memory",
                             shape.taps()));
  }

  bool fits(ImageWindowsShape const& shape) const {
    return shape.image_columns() <= max_box && shape.image_rows() <= max_box &&
           shape.shared_bytes() <= device_.gpu.shared_bytes_per_block;
  }

  void try_shape(ImageWindowsShape const& shape) {
    constexpr int other_registers = 64, allocated_registers = 65536;
    int const registers = shape.product_columns() / 2 + other_registers;
    if (registers > std::min(255, allocated_registers / shape.threads() / 8 * 8) || !fits(shape)) return;
    Tiles const tiles(roles_, shape);
    // A stage is released when the next chunk's products have begun.
    if (shape.image_stages == 1 && tiles.chunks > 1) return;
    Index const blocks = blocks_of(tiles, shape, device_);
    if (shape.keeps_filter && (tiles.chunks > 1 || blocks == 0)) return;
    double const seconds = predicted(shape, tiles, blocks);
    if (!best_.takes(seconds)) return;
    ConvolutionRecipe recipe;
    recipe.algorithm = ConvolutionAlgorithm::image_windows;
    recipe.product = product_recipe(all_channels_form(problem_));
    recipe.product.policy.multiply = Multiply::wgmma;
    recipe.product.predicted_seconds = seconds;
    recipe.own = ImageWindowsRecipe{shape};
    best_.take(
        {{},
         0,
         seconds,
         recipe,
         fmt::format("wgmma, 64 channels of {}x{} patches of {}x8 outputs{}, {} stages of the image and "
                     "{}, {} bytes of shared memory, 1 launch",
                     shape.down, shape.across, shape.patch_rows,
                     shape.alternates ? ", two warpgroups alternate" : "", shape.image_stages,
                     shape.keeps_filter ? "the complete filter"
                                        : fmt::format("{} of the filter", shape.filter_stages),
                     shape.shared_bytes())});
  }

  // Predicted seconds: limited by tensor cores, copies, stores or memory.
  double predicted(ImageWindowsShape const& shape, Tiles const& tiles, Index blocks) const {
    constexpr double launch_seconds = 2e-6, bytes_of_clock = 30, clocks_of_tap = 8, clocks_of_row = 80,
                     clocks_of_tile = 300, clocks_of_block = 400, clocks_of_copy = 750;
    // Shares: of the tensor cores' peak, and of a store that the other warpgroup hides.
    constexpr double of_peak = 0.79, hidden = 0.4;
    Gpu const& gpu = device_.gpu;
    double const steps = static_cast<double>(tiles.chunks) * shape.taps();
    double tap = shape.patches() * (2 * shape.product_columns() / of_peak + clocks_of_tap);
    if (!shape.keeps_filter)
      tap = std::max({tap, ImageWindowsShape::filter_bytes / bytes_of_clock,
                      clocks_of_copy * (shape.patches() > 1 ? 1.6 : 1) / (shape.filter_stages - 1)}) +
            60.0 / shape.filter_stages;
    double const image = shape.copied_bytes() / bytes_of_clock,
                 store = shape.patches() * shape.patch_rows * clocks_of_row;
    double tile = std::max(steps * tap, static_cast<double>(tiles.chunks) * image) + clocks_of_tile +
                  (shape.alternates ? 1 - hidden : 1) * store;
    if (shape.image_stages < (shape.alternates ? 2 : 1) + 1) tile += image;
    double const of_block = std::ceil(static_cast<double>(tiles.all()) / static_cast<double>(blocks));
    // The first tile of a block that keeps its filter waits for the copy of the filter.
    double const filter =
        shape.keeps_filter
            ? std::max(0.0, shape.taps() * ImageWindowsShape::filter_bytes / bytes_of_clock - steps * tap)
            : 0;
    double const compute = (of_block * tile + image + filter + store + clocks_of_block) / gpu.clock_hertz;
    double const memory = static_cast<double>(roles_.image.bytes() + roles_.result.bytes()) /
                          (0.85 * gpu.memory_bytes_per_second);
    return launch_seconds + std::max(compute, memory) + 0.1 * std::min(compute, memory);
  }

  Problem const& problem_;
  Device const& device_;
  GroupedRoles roles_;
  ImageWindowsShape base_;
  BestOffer<Problem> best_;
};

// The arguments without tensor maps.
ImageWindowsArguments arguments_of(Problem const& p, ImageWindowsShape const& shape,
                                   ConvolutionForm const& form) {
  GroupedRoles const roles = grouped_roles(p);
  Tiles const tiles(roles, shape);
  ImageWindowsArguments window;
  set_windows(window, p, form);
  window.outputs = to_int(roles.outputs);
  window.chunks = to_int(tiles.chunks), window.tiles = to_int(tiles.all());
  window.parts = Divisor(tiles.parts);
  window.tiles_across = Divisor(tiles.across), window.tiles_down = Divisor(tiles.down);
  return window;
}

}  // namespace

Offer<Problem> image_windows(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = image_windows_violation(problem, device, options);
  return offer.refusal.empty() ? ImageWindowsSearch(problem, device).best() : offer;
}

std::string ImageWindowsTraits::print() const {
  return fmt::format(
      "ImageWindowsTraits<ImageWindowsShape{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}, {},\n{},\n{}>",
      text_of(shape.rows), text_of(shape.columns), shape.patch_rows, shape.down, shape.across,
      shape.image_stages, shape.filter_stages, shape.alternates, shape.keeps_filter, shape.transposed,
      name_of(type), epilogue, destination);
}

program::Program image_windows_program(Plan<Problem> const& plan) {
  Problem const& problem = plan.problem;
  ImageWindowsShape const& shape = std::get<ImageWindowsRecipe>(plan.recipe.own).shape;
  ConvolutionForm form = all_channels_form(problem);
  cap_widths(form, 8);
  ConvolutionForm const merged = with_merged_rows(form);
  ConvolutionProgram made(plan, {});
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = ImageWindowsParameters<Epilogue, Destination>;
    KernelTypes const types = made.types_of(merged);
    ImageWindowsTraits const traits{shape, problem.w.type, types.epilogue, types.destination};
    std::size_t const kernel =
        made.add_kernel<Parameters>({.headers = {"conv/image_windows.h"},
                                     .entry = "image_windows_kernel",
                                     .traits = traits.print(),
                                     .asserted = {{"sizeof(ComposedTraits::SharedStorage)",
                                                   static_cast<std::size_t>(shape.shared_bytes())}},
                                     .threads = static_cast<unsigned>(shape.threads()),
                                     .shared_bytes = static_cast<unsigned>(shape.shared_bytes())},
                                    form);
    ImageWindowsArguments const window = arguments_of(problem, shape, form);
    Index const blocks = blocks_of(Tiles(grouped_roles(problem), shape), shape, plan.device);
    // Tensors of a data gradient: dy, w, dx.
    made.launch<Parameters>(kernel, {blocks}, [=](program::Run const& run, Parameters& to) {
      to.window = window;
      to.window.image = run.encode(line_boxes(grouped_roles(problem).image, run.tensors[0], 0, 1,
                                              shape.image_columns(), shape.image_rows(), 1));
      to.window.filter = run.encode(filter_boxes(
          problem.w, run.tensors[1], {ImageWindowsShape::line_channels, ImageWindowsShape::outputs, 1, 1}));
      fill_destination(to.d, form.d, ConvolutionProgram::result(run));
      fill_epilogue(to.epilogue, form, run);
    });
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
