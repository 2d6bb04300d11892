// Slices of the unrolled (im2col) matrix, their layout, and the predicted time of writing them.
#include "src/plan/conv/unroll.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/operand_access.h"
#include "src/plan/conv/product_choice.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

Index up(Index value, Index unit) { return (value + unit - 1) / unit * unit; }

// The matrix as contiguous lines, each aligned to a sector of memory; pitches are in elements.
struct Matrix {
  Index line, lines, pitch, matrix_pitch;
};
Matrix matrix_of(ConvolutionForm const& form, UnrollRecipe const& recipe) {
  Index const outer = ConvolutionForm::extent(form.image_outer()), depth = form.depth();
  bool const deep = recipe.along == Along::k;
  Matrix matrix{deep ? depth : outer, deep ? outer : depth, 0, 0};
  matrix.pitch = up(matrix.line, sector_bytes / size_of(form.image().type));
  matrix.matrix_pitch = matrix.pitch * matrix.lines;
  return matrix;
}

WindowForm matrix_form(ConvolutionForm const& form, UnrollRecipe const& recipe) {
  Matrix const matrix = matrix_of(form, recipe);
  bool const deep = recipe.along == Along::k;
  auto const index = [](Index extent, Index stride) {
    IndexStrides steps;
    steps.extents = {Divisor(1), Divisor(std::max<Index>(1, extent))};
    steps.last.stride = stride;
    return steps;
  };
  WindowForm written;
  written.type = form.image().type;
  written.alignment = static_cast<int>(buffer_alignment);
  written.access = {recipe.along, 16 / size_of(written.type)};
  written.arguments.batch_stride = matrix.matrix_pitch;
  written.arguments.outer = index(ConvolutionForm::extent(form.image_outer()), deep ? matrix.pitch : 1);
  written.arguments.depth = index(form.depth(), deep ? 1 : matrix.pitch);
  written.arguments.depth_extent = static_cast<int>(form.depth());
  return written;
}

std::vector<ConvolutionForm> forms_to_unroll(Problem const& problem) {
  std::vector<ConvolutionForm> forms = forms_of(problem, DepthOrder::as_the_filter_lies);
  unify(forms);
  return forms;
}

// The number of 32-byte sectors that a warp reads if its 32 lanes follow these digits, one element each:
// those that a run of elements spans, plus one for each run that begins.
double sectors_of_warp(IndexStrides const& steps, int element_bytes) {
  Index run = steps.extents.last.divisor;
  if (steps.middle.stride == run * steps.last.stride) run *= steps.extents.middle.divisor;
  double const step = static_cast<double>(std::abs(steps.last.stride)) * element_bytes;
  return std::min(32.0, step + 32.0 / static_cast<double>(run));
}

// Chooses the major for which the image is read in fewer sectors; 1-byte elements are always K-major.
UnrollRecipe lines_of(WindowForm const& image) {
  UnrollRecipe recipe;
  recipe.along = image.access.along;
  recipe.width = image.access.width;
  int const bytes = size_of(image.type);
  WindowArguments const& walk = image.arguments;
  if (recipe.width == 1)
    recipe.along =
        sectors_of_warp(walk.outer, bytes) < sectors_of_warp(walk.depth, bytes) ? Along::mn : Along::k;
  if (bytes == 1 && recipe.along == Along::mn) recipe.along = Along::k, recipe.width = 1;
  return recipe;
}

class Slices {
 public:
  Slices(std::vector<ConvolutionForm> const& forms, UnrollRecipe const& recipe, std::size_t element_bytes)
      : forms_(forms), recipe_(recipe), element_bytes_(element_bytes) {
    for (ConvolutionForm const& form : forms) extent_ = std::max(extent_, digit_of(form).extent);
  }
  Index extent() const { return extent_; }
  std::size_t bytes(Index slice) const {
    std::size_t maximum = 0;
    for (ConvolutionForm form : forms_) {
      ProductDigit& digit = form.image_outer()[static_cast<std::size_t>(recipe_.digit)];
      digit.extent = std::min(digit.extent, slice);
      Matrix const matrix = matrix_of(form, recipe_);
      maximum =
          std::max(maximum, static_cast<std::size_t>(matrix.matrix_pitch * form.groups) * element_bytes_);
    }
    return padded_bytes(maximum);
  }
  // The largest slice of equal slices that fits in `maximum` bytes; 0 if there is none.
  Index largest(std::size_t maximum) const {
    if (bytes(extent_) <= maximum) return extent_;
    Index slice = static_cast<Index>(maximum / std::max<std::size_t>(1, bytes(1)));
    slice = std::min(slice, extent_);
    while (slice > 0 && bytes(slice) > maximum) --slice;
    return slice == 0 ? 0 : even(slice);
  }

 private:
  ProductDigit const& digit_of(ConvolutionForm const& form) const {
    return form.image_outer()[static_cast<std::size_t>(recipe_.digit)];
  }
  Index even(Index slice) const {
    Index const slices = (extent_ + slice - 1) / slice;
    return (extent_ + slices - 1) / slices;
  }
  std::vector<ConvolutionForm> const& forms_;
  UnrollRecipe recipe_;
  std::size_t element_bytes_;
  Index extent_ = 1;
};

// Predicted time: elements are read through the caches and written once.
double writing_seconds(std::vector<ConvolutionForm> const& forms, UnrollRecipe const& recipe,
                       Gpu const& gpu) {
  constexpr double launch_seconds = 2.5e-6, share_of_copy = 0.6;
  double seconds = 0;
  for (ConvolutionForm const& form : forms) {
    double const elements =
        static_cast<double>(matrix_of(form, recipe).matrix_pitch) * static_cast<double>(form.groups);
    // A thread issues about twenty instructions per access.
    double const clocks = elements / recipe.width * 20 / (128.0 * gpu.multiprocessors);
    double const bytes = 1.5 * elements * size_of(form.image().type);
    seconds += launch_seconds +
               std::max(clocks / gpu.clock_hertz, bytes / (share_of_copy * gpu.memory_bytes_per_second));
  }
  return seconds;
}

}  // namespace

std::vector<ConvolutionForm> unrolled_forms(Problem const& problem, UnrollRecipe const& recipe) {
  std::vector<ConvolutionForm> list;
  for (ConvolutionForm const& form : forms_to_unroll(problem)) {
    Index const extent = form.image_outer()[static_cast<std::size_t>(recipe.digit)].extent;
    for (Index first = 0; first < extent; first += recipe.slice) {
      ConvolutionForm part = slice_of(form, recipe.digit, first, std::min(recipe.slice, extent - first));
      WindowForm const written = matrix_form(part, recipe);
      part.unrolled = part.image();
      part.unrolled.access = {recipe.along, recipe.width};
      part.image() = written;
      merge_digits(part.image_is_a ? part.b : part.a,
                   ConvolutionForm::extent(part.image_is_a ? part.n : part.m), part.depth());
      list.push_back(part);
    }
  }
  unify(list);
  return list;
}

std::string UnrollTraits::print() const {
  char const* const bits = element_bytes == 1   ? "unsigned char"
                           : element_bytes == 2 ? "unsigned short"
                           : element_bytes == 4 ? "unsigned"
                                                : "unsigned long long";
  return fmt::format("cosmati::WindowSource<{}, cosmati::Along::{}, {}, cosmati::DepthDigits::each, {}>",
                     bits, along == Along::k ? "k" : "mn", width, windowed);
}

UnrollTraits emulated_unrolling(int element_bytes, Along along, int width) {
  return {element_bytes, along, element_bytes == 4 && along == Along::k && width >= 4 ? 4 : 1};
}

program::KernelSpec unrolling_kernel(WindowForm const& image, UnrollRecipe const& recipe, bool emulated) {
  int const bytes = size_of(image.type);
  UnrollTraits const traits =
      emulated ? emulated_unrolling(bytes, recipe.along, recipe.width)
               : UnrollTraits{bytes, image.access.along, image.access.width, image.windowed};
  return {.headers = {"conv/unroll.h"},
          .entry = "unroll_kernel",
          .traits = traits.print(),
          .is_composed = false,
          .threads = unroll_threads,
          .label = "unrolling"};
}

UnrollLaunch unroll_launch(ConvolutionForm const& form, UnrollRecipe const& recipe, void const* from,
                           std::byte* workspace) {
  Matrix const matrix = matrix_of(form, recipe);
  WindowArguments const& written = form.image().arguments;
  Index const runs = (matrix.line + recipe.width - 1) / recipe.width;
  UnrollLaunch launch;
  UnrollParameters& parameters = launch.parameters;
  parameters.from = window_arguments(form.unrolled, from);
  if (workspace != nullptr) parameters.to = workspace + recipe.offset;  // null while planning
  parameters.outer = static_cast<int>(ConvolutionForm::extent(form.image_outer()));
  parameters.depth = static_cast<int>(form.depth());
  parameters.pitch = (recipe.along == Along::k ? written.outer : written.depth).last.stride;
  parameters.matrix_pitch = written.batch_stride;
  parameters.log2_lanes = 0;
  while ((1 << parameters.log2_lanes) < unroll_threads && (Index{1} << parameters.log2_lanes) < runs)
    ++parameters.log2_lanes;
  Index const lanes = Index{1} << parameters.log2_lanes;
  Index const lines = unroll_threads / lanes * unroll_lines_of_thread;
  Index const across = (runs + lanes - 1) / lanes;
  parameters.blocks_of_line = Divisor(std::max<Index>(1, across));
  launch.blocks = across * ((matrix.lines + lines - 1) / lines);
  return launch;
}

Offer<Problem> unroll_gemm(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (!offer.refusal.empty()) return offer;
  std::vector<ConvolutionForm> const whole = forms_to_unroll(problem);
  offer.refusal = extent_violation(whole);
  if (!offer.refusal.empty()) return offer;

  ConvolutionForm const& front = whole.front();
  ConvolutionRecipe recipe;
  recipe.algorithm = ConvolutionAlgorithm::unroll_gemm;
  UnrollRecipe& unroll = recipe.own.emplace<UnrollRecipe>(lines_of(front.image()));
  unroll.digit = front.image_outer()[0].extent > 1 ? 0 : 1;
  bool const emulated = device.backend == Backend::emulator;  // its operands may have been widened
  DataType const element = emulated ? front.sum : front.image().type;
  Slices const slices(whole, unroll, static_cast<std::size_t>(size_of(element)));
  std::size_t const maximum = workspace_limit(options, device);
  unroll.slice = slices.largest(maximum);
  if (unroll.slice == 0) {
    offer.refusal = fmt::format(
        "the smallest slice of the unrolled matrix needs {} bytes of workspace, the whole matrix {}; at "
        "most {}",
        slices.bytes(1), slices.bytes(slices.extent()), maximum);
    return offer;
  }
  unroll.bytes = slices.bytes(unroll.slice);
  std::vector<ConvolutionForm> const forms = unrolled_forms(problem, unroll);
  recipe.launches = static_cast<int>(forms.size());
  if (forms.empty()) {
    offer.refusal = "the unrolled matrix is empty";
    return offer;
  }
  offer = best_product(problem, device, options, forms, recipe);
  if (!offer.refusal.empty()) return offer;
  double const writing = writing_seconds(forms, unroll, device.gpu);
  offer.predicted_seconds += writing;
  offer.text += fmt::format(", {} bytes unrolled along {} by {} in {:.3g} us", unroll.bytes,
                            unroll.along == Along::k ? "k" : "the pixels", unroll.width, writing * 1e6);
  return offer;
}

}  // namespace cosmati::plan
