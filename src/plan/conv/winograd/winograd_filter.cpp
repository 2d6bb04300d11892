// The offer and the launches of filter gradients by Winograd's convolution.
#include "src/plan/conv/winograd/winograd_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_gradient.h"
#include "src/plan/conv/winograd/winograd_program.h"
#include "src/plan/make_plan.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

std::string violation(Problem const& p) {
  Index const rows = p.w.extent(2), columns = p.w.extent(3);
  if (rows != 3 || columns != 3) return fmt::format("the filter has {}x{} taps; expected 3x3", rows, columns);
  if (std::string sentence = winograd_shape_violation(p); !sentence.empty()) return sentence;
  if (p.x.type != DataType::f32 || p.y.type != DataType::f32)
    return fmt::format("x and dy are {} and {}; for filter gradients, both must be f32", name_of(p.x.type),
                       name_of(p.y.type));
  if (p.x.layout.size() == 0 || p.y.layout.size() == 0) return "there are no elements to transform";
  return {};
}

// The matrices of a slice of images: transformed x and dy, and the sums of one slice.
class Slice {
 public:
  Slice(Problem const& problem, WinogradRecipe const& recipe)
      : problem_(problem), form_(winograd_form(forward_of(problem))), recipe_(recipe) {}

  SlidingForm const& form() const { return form_; }
  Index images() const { return form_.window.images; }
  Index parts() const { return images() / recipe_.slice; }
  Index tiles_of_image() const {
    auto const across = [&](Index extent) { return (extent + recipe_.tile - 1) / recipe_.tile; };
    return across(form_.window.rows.outputs) * across(form_.window.columns.outputs);
  }

  WinogradImageParameters image(void const* x, Index first, std::byte* workspace) const {
    return image_parameters(form_, recipe_, x, first, recipe_.slice, 0, workspace);
  }
  WinogradGradientParameters gradient(void const* dy, Index first, std::byte* workspace) const {
    Index const* const stride = problem_.y.layout.stride;
    WinogradGradientParameters made;
    made.gradient = dy == nullptr
                        ? nullptr
                        : static_cast<std::byte const*>(dy) + first * stride[0] * size_of(problem_.y.type);
    made.type = problem_.y.type;
    made.tiles = winograd_tiles(form_, recipe_, recipe_.slice, stride[0]);
    made.rows = static_cast<int>(problem_.y.extent(2));
    made.columns = static_cast<int>(problem_.y.extent(3));
    made.channel_stride = stride[1], made.row_stride = stride[2], made.column_stride = stride[3];
    Index const tiles = recipe_.slice * tiles_of_image(), channels = problem_.y.extent(1);
    bool const last = recipe_.filter_inputs_last;
    Index const lines = last ? tiles : channels, places = last ? channels : tiles;
    made.to = winograd_matrix(lines, places, winograd_pitch(places, recipe_.type), lines, recipe_.type, 1,
                              workspace == nullptr ? nullptr : workspace + recipe_.filter);
    return made;
  }
  WinogradMatrix sums(std::byte* workspace) const {
    Index const filters = problem_.w.extent(0), channels = problem_.w.extent(1);
    return winograd_matrix(filters, channels, winograd_pitch(channels, DataType::f32), filters, DataType::f32,
                           1, workspace == nullptr ? nullptr : workspace + recipe_.sums);
  }
  std::size_t bytes_of_sums() const { return winograd_bytes(sums(nullptr), recipe_.size()); }

  // sums(k, c) = sum over tiles of dy(k, tile) * x(tile, c), for each position.
  GemmProblem product() const {
    GemmProblem gemm;
    gemm.a = winograd_operand(gradient(nullptr, 0, nullptr).to, recipe_.size(), !recipe_.filter_inputs_last);
    gemm.b = winograd_operand(image(nullptr, 0, nullptr).to, recipe_.size(), recipe_.image_channels_last);
    gemm.d = winograd_operand(sums(nullptr), recipe_.size(), true);
    return gemm;
  }

  // Sets the offsets of the matrices, which begin at `first`, and returns their end.
  static std::size_t layout(Problem const& problem, WinogradRecipe& recipe, std::size_t first = 0) {
    recipe.filter = padded_bytes(first);
    recipe.image = recipe.filter +
                   winograd_bytes(Slice(problem, recipe).gradient(nullptr, 0, nullptr).to, recipe.size());
    recipe.sums =
        recipe.image + winograd_bytes(Slice(problem, recipe).image(nullptr, 0, nullptr).to, recipe.size());
    Slice const slice(problem, recipe);
    recipe.end = recipe.sums + static_cast<std::size_t>(slice.parts()) * slice.bytes_of_sums();
    return recipe.end;
  }

 private:
  Problem problem_;
  SlidingForm form_;
  WinogradRecipe recipe_;
};

bool has_channels_last(TensorDescription const& tensor) {
  auto const distance = [&](int axis) {
    Index const stride = tensor.layout.stride[axis];
    return tensor.extent(axis) == 1 || stride == 0 ? Index{1} << 62 : std::abs(stride);
  };
  return distance(1) < std::min({distance(0), distance(2), distance(3)});
}

// Each slice reads x and dy once and writes their transforms, which the product reads.
double transform_seconds(Problem const& problem, Slice const& slice, WinogradRecipe const& recipe,
                         Gpu const& gpu) {
  auto const parts = static_cast<double>(slice.parts());
  auto const bytes = [](TensorDescription const& tensor) {
    return static_cast<double>(tensor.layout.size()) * size_of(tensor.type);
  };
  return transform_pass_seconds(bytes(problem.x) + parts * static_cast<double>(recipe.sums - recipe.image),
                                gpu) +
         transform_pass_seconds(bytes(problem.y) + parts * static_cast<double>(recipe.image - recipe.filter),
                                gpu) +
         transform_pass_seconds(static_cast<double>(recipe.end - recipe.sums) + bytes(problem.w), gpu) +
         2 * (parts - 1) * transform_pass_seconds(0, gpu);
}

Offer<Problem> offer_of(Problem const& problem, Device const& device, PlanOptions const& options, int tile) {
  constexpr Index max_parts = 16;
  Offer<Problem> offer;
  ConvolutionRecipe recipe;
  recipe.algorithm = ConvolutionAlgorithm::winograd;
  auto& own = recipe.own.emplace<WinogradRecipe>();
  own.tile = tile;
  own.image_channels_last = has_channels_last(problem.x);
  own.filter_inputs_last = has_channels_last(problem.y);
  std::size_t const maximum = workspace_limit(options, device);
  // Slices are equal, since a product adds all tiles of its slice.
  Index const images = problem.x.extent(0);
  own.slice = images;
  for (Index parts = 1; Slice::layout(problem, own) > maximum && parts <= std::min(max_parts, images);
       ++parts)
    if (images % parts == 0) own.slice = images / parts;
  if (own.end > maximum) {
    offer.refusal = fmt::format(
        "with tiles of {0}x{0}, the transformed arrays need {1} bytes of workspace in {2} slices; at most {3}",
        tile, own.end, images / own.slice, maximum);
    return offer;
  }
  PlanOptions of_product = options;
  of_product.kernel.clear();
  of_product.policy.tile.reset();
  of_product.max_error.reset();
  of_product.max_workspace -= std::min(of_product.max_workspace, own.end + buffer_alignment);
  Plan<GemmProblem> product;
  try {
    product = make_plan(Slice(problem, own).product(), device, of_product);
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_request) throw;
    offer.refusal = error.what();
    return offer;
  }
  if (product.kernel != name_of(product.recipe.policy.main_loop)) {
    offer.refusal = "the product uses the kernel " + product.kernel;
    return offer;
  }
  offer.workspace_bytes = Slice::layout(problem, own, product.workspace_bytes);
  recipe.product = product.recipe;
  Slice const slice(problem, own);
  Index const parts = slice.parts();
  recipe.launches = static_cast<int>(3 * parts + 1);
  double const transforms = transform_seconds(problem, slice, own, device.gpu);
  offer.predicted_seconds = transforms + static_cast<double>(parts) * product.recipe.predicted_seconds;
  offer.expected_error = winograd_filter_error(tile, images * slice.tiles_of_image());
  offer.recipe = recipe;
  offer.text = fmt::format(
      "tiles of {0}x{0}, a NaN spreads to all taps, expected error {1:.2g}, transforms {2:.3g} us, {3} launches, "
      "{4}: {5}",
      tile, offer.expected_error, transforms * 1e6, recipe.launches, product.kernel, product.chosen().recipe);
  return offer;
}

}  // namespace

Problem forward_of(Problem const& gradient) {
  Problem forward = gradient;
  forward.direction = ConvolutionDirection::forward;
  forward.db = {};
  forward.epilogue = {};
  return forward;
}

Offer<Problem> winograd_filter(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> best;
  best.refusal = problem_violation(problem, device.backend);
  if (best.refusal.empty()) best.refusal = violation(problem);
  if (best.refusal.empty()) best.refusal = extent_violation(forms_of(problem));
  if (best.refusal.empty()) best.refusal = extent_violation(forms_of(forward_of(problem)));
  if (!best.refusal.empty()) return best;
  bool first = true;
  for (int const tile : {4, 2}) {
    if (options.policy.tile.value_or(tile) != tile) continue;
    Offer<Problem> offer = offer_of(problem, device, options, tile);
    double const limit =
        options.max_error.value_or(options.kernel == "winograd" ? 1 : PlanOptions::default_max_error);
    if (offer.refusal.empty() && offer.expected_error > limit)
      offer.refusal = error_sentence(offer.expected_error, limit);
    bool const better =
        offer.refusal.empty() && (!best.refusal.empty() || offer.predicted_seconds < best.predicted_seconds);
    if (first || better) best = std::move(offer);
    first = false;
  }
  return best;
}

std::string WinogradGradientTraits::print() const {
  return fmt::format(
      "cosmati::WinogradGradientTraits<cosmati::WinogradGradientPolicy{{.tile = {}, .channels_last = {}}}, "
      "{}, {}>",
      policy.tile, policy.channels_last, from, to);
}

std::string WinogradTapsTraits::print() const {
  return fmt::format("WinogradTapsTraits<WinogradTapsPolicy{{.tile = {}, .swapped = {}}},\n{},\n{}>",
                     policy.tile, policy.swapped, epilogue, destination);
}

program::Program winograd_filter_program(Plan<Problem> const& plan) {
  auto const& recipe = std::get<WinogradRecipe>(plan.recipe.own);
  auto const slice = std::make_shared<Slice const>(plan.problem, recipe);
  program::Workspace workspace;
  workspace.add("products", recipe.filter);
  workspace.add("dy, transformed", recipe.filter, recipe.image - recipe.filter);
  workspace.add("x, transformed", recipe.image, recipe.sums - recipe.image);
  workspace.add("sums", recipe.sums, recipe.end - recipe.sums);
  ConvolutionProgram made(plan, std::move(workspace));
  ConvolutionForm const form = forms_of(plan.problem).front();
  bool const emulated = made.is_emulated();
  auto const pass = [&](char const* header, char const* entry, std::string traits, char const* label) {
    return program::KernelSpec{.headers = {header},
                               .entry = entry,
                               .traits = std::move(traits),
                               .is_composed = false,
                               .threads = winograd_threads,
                               .label = label};
  };
  std::string const elements = emulated ? "HostElements" : "cosmati::WinogradElements<cosmati::f32>";
  bool const image_last = recipe.image_channels_last;
  WinogradImageTraits const image{{.tile = recipe.tile,
                                   .channels_last = image_last,
                                   .channels = image_last ? winograd_channels(recipe) : 1,
                                   .together = emulated && !image_last},
                                  elements,
                                  elements};
  std::size_t const image_kernel = made.add_pass(
      pass("conv/winograd/winograd.h", "winograd_image_kernel", image.print(), "x transformed"));
  std::size_t const gradient_kernel = made.add_pass(
      pass("conv/winograd/filter_gradient.h", "winograd_gradient_kernel",
           WinogradGradientTraits{
               {.tile = recipe.tile, .channels_last = recipe.filter_inputs_last}, elements, elements}
               .print(),
           "dy transformed"));
  Plan<GemmProblem> product;
  product.problem = slice->product();
  product.device = plan.device;
  product.kernel = name_of(plan.recipe.product.policy.main_loop);
  product.recipe = plan.recipe.product;
  product.workspace_bytes = recipe.filter;
  std::size_t const products = made.add_product(std::move(product));
  std::size_t const bytes_of_sums = slice->bytes_of_sums();
  for (Index part = 0; part < slice->parts(); ++part) {
    Index const first = part * recipe.slice;
    made.launch<WinogradImageParameters>(
        image_kernel, {winograd_blocks(slice->image(nullptr, 0, nullptr).to, image.policy.channels)},
        [slice, first, from = made.image](program::Run const& run, WinogradImageParameters& to) {
          to = slice->image(from.of(run), first, run.workspace);
        });
    made.launch<WinogradGradientParameters>(
        gradient_kernel, {winograd_blocks(slice->gradient(nullptr, 0, nullptr).to, 1)},
        [slice, first, from = made.filter](program::Run const& run, WinogradGradientParameters& to) {
          to = slice->gradient(from.of(run), first, run.workspace);
        });
    made.call(program::ProductCall{products, recipe.filter, recipe.image,
                                   recipe.sums + static_cast<std::size_t>(part) * bytes_of_sums});
  }
  WinogradTapsTraits const taps{{.tile = recipe.tile, .swapped = form.image_is_a},
                                emulated ? "HostEpilogue" : epilogue_text(form),
                                emulated ? "HostDestination" : destination_text(form)};
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = WinogradTapsParameters<Epilogue, Destination>;
    program::KernelSpec kernel{.headers = {"conv/winograd/filter_gradient.h"},
                               .entry = "winograd_taps_kernel",
                               .traits = taps.print(),
                               .asserted = {{"sizeof(ComposedTraits::Params)", sizeof(Parameters)}},
                               .threads = winograd_threads};
    if (!emulated) kernel.declarations = function_text(plan.problem, form);
    if (!form.identity) kernel.label = plan.problem.epilogue.expression.text();
    made.launch<Parameters>(made.add_pass(std::move(kernel)), {winograd_blocks(slice->sums(nullptr), 1)},
                            [=](program::Run const& run, Parameters& to) {
                              to.from = slice->sums(run.workspace);
                              to.parts = static_cast<int>(slice->parts());
                              to.part_stride = static_cast<Index>(bytes_of_sums / sizeof(float));
                              to.channel_number = static_cast<int>(tap_digit(form, 'c').number);
                              to.row_number = static_cast<int>(tap_digit(form, 'r').number);
                              to.column_number = static_cast<int>(tap_digit(form, 's').number);
                              fill_destination(to.d, form.d, ConvolutionProgram::result(run));
                              fill_epilogue(to.epilogue, form, run);
                            });
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
