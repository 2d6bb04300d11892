// Choice of tile and slices for Winograd's convolution, with predicted time and error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cosmati/conv/winograd/winograd_matrices.h"
#include "src/ops/number_types.h"
#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/conv/winograd/winograd_filter.h"
#include "src/plan/make_plan.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr double mean_square_of_rounding =
    0.18;  // (1 - 1/4) / (6 ln 2), for logarithmically uniform mantissas

// For one dimension of `all` taps and independent inputs: the variance that an error of the transformed
// factors causes in the outputs (for a filter gradient, the taps), relative to that caused by the same
// relative error in the factors themselves, averaged over a tile.
template <int tile, int taps = 3>
double amplification(bool of_filter_gradient, Index all = 3) {
  using Matrices = WinogradMatrices<tile, taps>;
  double const real_taps = static_cast<double>(all);
  auto const square = [](double value) { return value * value; };
  double sum = 0;
  for (int position = 0; position < Matrices::size; ++position) {
    double output = 0, factor = 0, input = 0;
    for (int i = 0; i < (of_filter_gradient ? taps : tile); ++i)
      output += square(of_filter_gradient ? Matrices::tap(i, position) : Matrices::output(i, position));
    for (int i = 0; i < (of_filter_gradient ? tile : taps); ++i)
      factor += of_filter_gradient ? square(Matrices::gradient(position, i))
                                   : square(Matrices::filter(position, i)) *
                                         static_cast<double>((all - i + taps - 1) / taps);
    for (int i = 0; i < Matrices::size; ++i) input += square(Matrices::input(position, i));
    sum += output * factor * input;
  }
  return sum / (tile * real_taps);
}

// `terms` is the number of terms in each sum of products.
double error_of(double amplification, DataType type, Index terms) {
  double const of_type = unit_roundoff(type), of_sum = unit_roundoff(DataType::f32);
  return amplification *
         std::sqrt(mean_square_of_rounding *
                   (2 * of_type * of_type + of_sum * of_sum * (static_cast<double>(terms) / 2 + 12)));
}

DataType transformed_type(DataType type, WinogradRecipe const& recipe) {
  // Larger tiles would lose some of bf16's 8 bits; the 11 bits of tf32 preserve them. Parts of five taps
  // multiply data by up to 225, which leaves too little of f16's range.
  bool const loses =
      (type == DataType::bf16 && recipe.tile == 4) || (type == DataType::f16 && recipe.taps == 5);
  return loses ? DataType::tf32 : type;
}

bool computes(DataType type) {
  return type == DataType::f32 || type == DataType::tf32 || type == DataType::f16 || type == DataType::bf16;
}

// The taps of a part: five, if that takes at least a fifth fewer products, since the error is four times as
// large.
int taps_of_parts(int tile, Index rows, Index columns) {
  auto const products = [&](int taps) {
    Index const size = tile + taps - 1;
    return winograd_parts(rows, columns, taps) * size * size;
  };
  return tile == 4 && products(5) * 5 <= products(3) * 4 ? 5 : 3;
}

class Tile {
 public:
  Tile(Problem const& problem, Device const& device, PlanOptions const& options, int tile)
      : problem_(problem), device_(device), options_(options), form_(winograd_form(problem)) {
    recipe_.algorithm = ConvolutionAlgorithm::winograd;
    auto& own = recipe_.own.emplace<WinogradRecipe>();
    ConvolutionForm const& form = form_.form;
    own.tile = tile;
    own.taps = taps_of_parts(tile, form_.window.rows.taps, form_.window.columns.taps);
    own.type = transformed_type(form.image().type, own);
    SlidingArguments const& window = form_.window;
    auto const distance = [](Index stride) { return stride == 0 ? Index{1} << 62 : std::abs(stride); };
    bool const parts_are_aligned =
        winograd_parts(form_, own) == 1 || window.inputs % winograd_channels(own) == 0;
    own.image_channels_last =
        parts_are_aligned && distance(window.image_input) < std::min({distance(window.columns.image_stride),
                                                                      distance(window.rows.image_stride),
                                                                      distance(window.image_stride)});
    own.image_together = own.image_channels_last && is_together();
    own.run = form.image_is_a                                          ? WinogradRun::channels
              : window.columns.number == 1 && window.image_number != 1 ? WinogradRun::columns
                                                                       : WinogradRun::pixel;
    own.filter_inputs_last = own.type != DataType::f32;  // the layout that tensor cores read directly
  }

  Offer<Problem> offer(PolicyRequest const& policy) {
    Offer<Problem> offer;
    WinogradRecipe& own = std::get<WinogradRecipe>(recipe_.own);
    std::size_t const maximum = limit();
    Index const images = form_.window.images;
    own.slice = 1;
    if (std::size_t const minimum = bytes(); minimum > maximum) {
      own.slice = images;
      offer.refusal = fmt::format(
          "with tiles of {0}x{0}, the transformed filters and one image need {1} bytes of workspace, with "
          "all images {2}; at most {3}",
          own.tile, minimum, bytes(), maximum);
      return offer;
    }
    own.slice = largest_slice(images, [&](Index slice) {
      own.slice = slice;
      return bytes() <= maximum;
    });
    Plan<Problem> plan;
    plan.problem = problem_, plan.device = device_, plan.recipe = recipe_;
    PlanOptions of_product = options_;
    of_product.kernel.clear();
    of_product.policy = policy;
    of_product.max_error.reset();
    of_product.max_workspace =
        options_.max_workspace - std::min(options_.max_workspace, bytes() + buffer_alignment);
    try {
      Plan<GemmProblem> const product = make_plan(winograd_product(plan).problem, device_, of_product);
      if (product.kernel != name_of(product.recipe.policy.main_loop)) {
        offer.refusal = "the product uses the kernel " + product.kernel;
        return offer;
      }
      complete(offer, product);
    } catch (Error const& error) {
      if (error.code() != ErrorCode::bad_request) throw;
      offer.refusal = error.what();
    }
    return offer;
  }

  double error() const {
    WinogradRecipe const& own = std::get<WinogradRecipe>(recipe_.own);
    return winograd_error(own.tile, own.type, form_.window.inputs, form_.window.rows.taps,
                          form_.window.columns.taps, own.taps);
  }

 private:
  bool is_together() const {
    SlidingArguments const& window = form_.window;
    WindowForm const& image = form_.form.image();
    int const channels = winograd_channels(std::get<WinogradRecipe>(recipe_.own));
    auto const whole = [&](Index value) { return value % channels == 0; };
    return window.image_input == 1 && image.alignment % (channels * size_of(image.type)) == 0 &&
           whole(window.image_stride) && whole(window.rows.image_stride) &&
           whole(window.columns.image_stride) && whole(form_.image_base);
  }

  std::size_t limit() const { return workspace_limit(options_, device_); }

  // The size of the matrices of a slice that begin at offset `first`.
  std::size_t bytes(std::size_t first = 0) {
    WinogradRecipe& own = std::get<WinogradRecipe>(recipe_.own);
    own.filter = padded_bytes(first);
    own.image = own.filter + winograd_bytes(filter_matrix(form_, own, nullptr), own.size());
    own.sums = own.image + winograd_bytes(image_matrix(form_, own, own.slice, nullptr), own.size());
    own.end = own.sums + winograd_bytes(sums_matrix(form_, own, own.slice, nullptr), own.size());
    return own.end;
  }

  void complete(Offer<Problem>& offer, Plan<GemmProblem> const& product) {
    WinogradRecipe const& own = std::get<WinogradRecipe>(recipe_.own);
    offer.workspace_bytes = bytes(product.workspace_bytes);
    recipe_.product = product.recipe;
    Index const images = form_.window.images, slices = (images + own.slice - 1) / own.slice;
    int const parts = winograd_parts(form_, own);
    recipe_.launches = static_cast<int>(parts + (2 + parts) * slices);
    double const transforms = transform_seconds(slices);
    Considered const& chosen = product.chosen();
    offer.predicted_seconds = transforms + static_cast<double>(slices) * chosen.predicted_seconds;
    offer.expected_error = error();
    offer.recipe = recipe_;
    offer.text = fmt::format(
        "tiles of {0}x{0}, {5}a NaN spreads to its whole tile, expected error {1:.2g}, transforms {2:.3g} us, "
        "{3} launches, {4} of {6}: {7}",
        own.tile, offer.expected_error, transforms * 1e6, recipe_.launches, product.kernel,
        (own.taps == 3 ? "" : fmt::format("{0}x{0} taps, ", own.taps)) +
            (parts == 1 ? "" : fmt::format("filters in {} parts, ", parts)),
        name_of(own.type), chosen.recipe);
  }

  double transform_seconds(Index slices) const {
    WinogradRecipe const& own = std::get<WinogradRecipe>(recipe_.own);
    SlidingArguments const& window = form_.window;
    auto const real = [](auto value) { return static_cast<double>(value); };
    ConvolutionForm const& form = form_.form;
    double const image = real(window.images) * window.inputs * window.rows.size * window.columns.size *
                         size_of(form.image().type);
    double const filter = real(window.inputs) * window.outputs * window.rows.taps * window.columns.taps *
                          size_of((form.image_is_a ? form.b : form.a).type);
    int const parts = winograd_parts(form_, own);
    double const transformed = real(slices) * real(own.sums - own.image),
                 sums = real(slices) * real(own.end - own.sums);
    double const launches =
        (real(slices - 1) * 2 + real(parts - 1) * real(slices + 1)) * transform_pass_seconds(0, device_.gpu);
    return launches + transform_pass_seconds(filter + real(own.image - own.filter), device_.gpu) +
           transform_pass_seconds(image * parts + transformed, device_.gpu) +
           transform_pass_seconds(sums + real(form_.result_bytes()), device_.gpu);
  }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  SlidingForm form_;
  ConvolutionRecipe recipe_;
};

}  // namespace

double sums_error(DataType sum, Index terms) {
  return unit_roundoff(sum) * std::sqrt(mean_square_of_rounding * static_cast<double>(terms) / 2);
}

double winograd_error(int tile, DataType type, Index channels, Index rows, Index columns, int taps) {
  auto const of = [&](Index all) {
    return tile == 2   ? amplification<2>(false, all)
           : taps == 3 ? amplification<4>(false, all)
                       : amplification<4, 5>(false, all);
  };
  // The square root of the variance over two dimensions.
  return error_of(std::sqrt(of(rows) * of(columns)), type, winograd_parts(rows, columns, taps) * channels);
}

double winograd_filter_error(int tile, Index tiles) {
  return error_of(tile == 2 ? amplification<2>(true) : amplification<4>(true), DataType::f32, tiles);
}

std::size_t winograd_bytes(WinogradMatrix const& matrix, int size) {
  return padded_bytes(static_cast<std::size_t>(size * size * matrix.matrix_pitch * size_of(matrix.type)));
}

double transform_pass_seconds(double bytes, Gpu const& gpu) {
  constexpr double launch_seconds = 2.5e-6, share_of_bandwidth = 0.8;  // share of the data sheet's bandwidth
  return launch_seconds + bytes / (share_of_bandwidth * gpu.memory_bytes_per_second);
}

std::string winograd_shape_violation(Problem const& problem) {
  for (int i = 0; i < 2; ++i)
    if (problem.stride[i] != 1 || problem.dilation[i] != 1)
      return fmt::format("stride {} and dilation {}; both must be 1", problem.stride[i], problem.dilation[i]);
  if (problem.groups != 1) return fmt::format("{} groups; expected 1", problem.groups);
  return {};
}

std::string winograd_violation(Problem const& problem) {
  if (problem.direction != ConvolutionDirection::forward && problem.direction != ConvolutionDirection::data)
    return "supports results and gradients of data and filters";
  Index const rows = problem.w.extent(2), columns = problem.w.extent(3);
  if (std::min(rows, columns) < 2 || std::max(rows, columns) > 9)
    return fmt::format("the filter has {}x{} taps; expected 2x2 to 9x9", rows, columns);
  if (std::string sentence = winograd_shape_violation(problem); !sentence.empty()) return sentence;
  DataType const image = (problem.direction == ConvolutionDirection::forward ? problem.x : problem.y).type;
  if (image != problem.w.type || !computes(image))
    return fmt::format(
        "the factors are {} and {}; the transforms require equal types: f32, tf32, f16 or bf16",
        name_of(image), name_of(problem.w.type));
  if (problem.x.layout.size() == 0 || problem.y.layout.size() == 0)
    return "there are no elements to transform";
  return {};
}

Offer<Problem> winograd(Problem const& problem, Device const& device, PlanOptions const& options) {
  if (problem.direction == ConvolutionDirection::filter) return winograd_filter(problem, device, options);
  Offer<Problem> best;
  best.refusal = problem_violation(problem, device.backend);
  if (best.refusal.empty()) best.refusal = winograd_violation(problem);
  if (best.refusal.empty()) best.refusal = extent_violation(forms_of(problem));
  if (!best.refusal.empty()) return best;
  PolicyRequest policy = options.policy;  // of the product
  policy.tile.reset();
  bool const by_name = options.kernel == "winograd";
  for (int const tile : {4, 2}) {
    if (options.policy.tile.value_or(tile) != tile) continue;
    Tile candidate(problem, device, options, tile);
    double const limit = options.max_error.value_or(by_name ? 1 : PlanOptions::default_max_error);
    Offer<Problem> offer;
    if (candidate.error() > limit)
      offer.refusal = error_sentence(candidate.error(), limit) +
                      (options.max_error ? "" : "; --max-error or --kernel allows more") +
                      fmt::format(" (tiles of {0}x{0})", tile);
    else
      offer = candidate.offer(policy);
    bool const first = tile == options.policy.tile.value_or(4);
    bool const better =
        offer.refusal.empty() && (!best.refusal.empty() || offer.predicted_seconds < best.predicted_seconds);
    if (first || better || (!offer.refusal.empty() && !best.refusal.empty())) best = std::move(offer);
  }
  return best;
}

}  // namespace cosmati::plan
