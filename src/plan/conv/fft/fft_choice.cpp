// Choice of transforms, tiles and slices for convolution by Fourier transforms, with predicted time and
// error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/integers.h"
#include "src/plan/make_plan.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

double real(auto value) { return static_cast<double>(value); }

bool computes(DataType type) {
  return type == DataType::f64 || type == DataType::f32 || type == DataType::tf32 || type == DataType::f16 ||
         type == DataType::bf16;
}
bool is_short(DataType type) {
  return type == DataType::tf32 || type == DataType::f16 || type == DataType::bf16;
}

// A work area of at least as many bytes as cuFFT requires for transforms of `plane_bytes` in all, in extents
// of 2^a 3^b 5^c 7^d; cuda::CufftPlan checks it.
constexpr std::size_t max_work_bytes(std::size_t plane_bytes) {
  return 2 * plane_bytes + (std::size_t{1} << 20);
}

// The smallest extent >= `minimum` of the form 2^a 3^b 5^c 7^d; must be even on the axis for which only half
// of the frequencies are stored.
Index good_extent(Index minimum, bool even) {
  for (Index extent = std::max<Index>(2, minimum);; ++extent) {
    if (even && extent % 2 != 0) continue;
    Index rest = extent;
    for (Index const prime : {2, 3, 5, 7})
      while (rest % prime == 0) rest /= prime;
    if (rest == 1) return extent;
  }
}

// The tiling of one axis.
struct Cut {
  Index tiles = 1, tile = 1, extent = 2;
};

// The smallest period without aliasing within a tile. A single tile may be shorter by overlapping its
// padding, since the elements that wrap around are zero.
Index min_extent(WindowAxis const& axis, bool gradient, Index tile, bool alone) {
  Index const outputs = gradient ? axis.outputs : tile, taps = gradient ? tile : axis.taps;
  Index const last_output = std::max<Index>(0, outputs - 1) * axis.output_step,
              last_tap = std::max<Index>(0, taps - 1) * axis.tap_step;
  Index const span = last_output + last_tap + 1;
  if (!alone) return span;
  Index const before = std::max(0, -axis.origin);
  return std::max(
      {std::min<Index>(axis.size - axis.origin, span), span - before, last_output + 1, last_tap + 1});
}

// The candidate tilings by number of tiles, without duplicates.
std::vector<Cut> cuts_of(std::vector<FftForm> const& forms, WindowAxis FftForm::*member, bool even,
                         Index max_grid_extent) {
  constexpr Index max_tiles = 16;
  bool const gradient = forms.front().gradient;
  Index all = 1;
  for (FftForm const& form : forms)
    all = std::max<Index>(all, gradient ? (form.*member).taps : (form.*member).outputs);
  std::vector<Cut> cuts;
  for (Index tiles = 1; tiles <= std::min(all, max_tiles); ++tiles) {
    Cut cut;
    cut.tile = ceiling_divide(all, tiles);
    cut.tiles = ceiling_divide(all, cut.tile);
    Index minimum = 1;
    for (FftForm const& form : forms)
      minimum = std::max(minimum, min_extent(form.*member, gradient, cut.tile, cut.tiles == 1));
    cut.extent = good_extent(minimum, even);
    if (cut.extent > max_grid_extent) continue;
    if (cuts.empty() || cut.extent < cuts.back().extent) cuts.push_back(cut);
  }
  return cuts;
}

class FftSearch {
 public:
  FftSearch(Problem const& problem, Device const& device, PlanOptions const& options,
            std::vector<FftForm> const& forms, DataType factor)
      : problem_(problem),
        device_(device),
        options_(options),
        forms_(forms),
        factor_(factor),
        policy_(options.policy),
        max_extent_(options.policy.extent.value_or(PolicyRequest::max_extent)) {
    policy_.extent.reset();
  }

  Offer<Problem> best() {
    std::vector<FftRecipe> recipes = cut_candidates();
    Offer<Problem> best;
    best.refusal = fmt::format("a window does not fit into a transform of at most {0}x{0}", max_extent_);
    bool first = true;
    for (FftRecipe const& recipe : recipes) {
      Offer<Problem> offer = offer_of(recipe);
      if (first || (offer.refusal.empty() &&
                    (!best.refusal.empty() || offer.predicted_seconds < best.predicted_seconds)))
        best = std::move(offer);
      first = false;
    }
    return best;
  }

 private:
  FftForm const& form() const { return forms_.front(); }
  Index outers() const {
    Index maximum = 1;
    for (FftForm const& each : forms_) maximum = std::max(maximum, each.outers);
    return maximum;
  }

  // The tilings predicted to be fastest before their matrix products are planned.
  std::vector<FftRecipe> cut_candidates() const {
    struct CutCandidate {
      double seconds;
      FftRecipe recipe;
    };
    std::vector<CutCandidate> list;
    for (Cut const& rows : cuts_of(forms_, &FftForm::rows, false, max_extent_))
      for (Cut const& columns : cuts_of(forms_, &FftForm::columns, true, max_extent_)) {
        FftRecipe recipe;
        recipe.rows = static_cast<int>(rows.extent), recipe.columns = static_cast<int>(columns.extent);
        recipe.tile_rows = static_cast<int>(rows.tile);
        recipe.tile_columns = static_cast<int>(columns.tile);
        recipe.tiles_down = static_cast<int>(rows.tiles);
        recipe.tiles_across = static_cast<int>(columns.tiles);
        recipe.real = form().form.sum == DataType::f64 ? DataType::f64 : DataType::f32;
        recipe.factor = factor_;
        FftExtents const whole = fft_extents(form(), recipe, outers());
        recipe.doubled = whole.image_lines < whole.filter_lines ? FftDoubled::image : FftDoubled::filter;
        if (!fit(recipe)) continue;
        list.push_back({transform_seconds(recipe) + rough_product_seconds(recipe), recipe});
      }
    std::stable_sort(list.begin(), list.end(),
                     [](CutCandidate const& a, CutCandidate const& b) { return a.seconds < b.seconds; });
    std::vector<FftRecipe> recipes;
    constexpr std::size_t planned = 3;
    for (std::size_t i = 0; i < std::min(planned, list.size()); ++i) recipes.push_back(list[i].recipe);
    return recipes;
  }

  std::size_t limit() const { return workspace_limit(options_, device_); }

  // Chooses the slice and the workspace layout. Returns false if even the smallest slice exceeds the index
  // range.
  bool fit(FftRecipe& recipe) const {
    Index const all = outers();
    std::size_t const maximum = limit();
    auto const fits = [&](Index slice) {
      recipe.slice = slice;
      return numbered(recipe) && place(recipe, 0) <= maximum;
    };
    recipe.slice = largest_slice(all, fits);
    place(recipe, 0);
    return numbered(recipe);
  }

  struct Planes {
    Index image, filter, sums;
  };
  Planes planes_of(FftRecipe const& recipe) const {
    FftExtents const e = fft_extents(form(), recipe, recipe.slice);
    return {e.groups * e.image_lines * e.depths, e.groups * e.filter_lines * e.depths,
            e.groups * e.image_lines * e.filter_lines};
  }
  bool numbered(FftRecipe const& recipe) const {
    Planes const planes = planes_of(recipe);
    FftExtents const e = fft_extents(form(), recipe, recipe.slice);
    return std::max({planes.image, planes.filter, planes.sums, e.frequencies * e.groups}) <= max_int;
  }

  // The number of planes per call, in chunks of equal size that stay in the L2 cache between kernels.
  int chunk_of(Index planes, FftRecipe const& recipe) const {
    Index const bytes = device_.gpu.l2_bytes > 0 ? device_.gpu.l2_bytes / 2 : Index{16} << 20;
    Index const maximum = std::clamp<Index>(bytes / fft_plane_bytes(recipe), 1, 1 << 20);
    return static_cast<int>(
        std::max<Index>(1, ceiling_divide(planes, std::max<Index>(1, ceiling_divide(planes, maximum)))));
  }

  // Assigns offsets to the matrices of a slice, starting at `first`; returns the end.
  std::size_t place(FftRecipe& recipe, std::size_t first) const {
    Planes const planes = planes_of(recipe);
    recipe.image_chunk = chunk_of(planes.image, recipe);
    recipe.filter_chunk = chunk_of(planes.filter, recipe);
    recipe.sums_chunk = chunk_of(planes.sums, recipe);
    std::size_t const chunk =
        static_cast<std::size_t>(std::max({recipe.image_chunk, recipe.filter_chunk, recipe.sums_chunk})) *
        static_cast<std::size_t>(fft_plane_bytes(recipe));
    FftExtents const e = fft_extents(form(), recipe, recipe.slice);
    Index const image = recipe.doubled == FftDoubled::image ? 2 : 1, filter = 3 - image;
    recipe.work_bytes = device_.backend == Backend::cuda ? max_work_bytes(chunk) : 0;
    recipe.planes = padded_bytes(first);
    recipe.work = recipe.planes + padded_bytes(chunk);
    recipe.image = recipe.work + padded_bytes(recipe.work_bytes);
    recipe.filter =
        recipe.image + padded_bytes(fft_matrix_bytes(e, image * e.image_lines, 2 * e.depths, recipe.factor));
    if (fft_pointwise(form())) {  // a multiple of the chunk
      Index const chunks = ceiling_divide(planes.filter, recipe.filter_chunk);
      recipe.filter = recipe.image;
      recipe.sums = recipe.end =
          recipe.filter +
          padded_bytes(static_cast<std::size_t>(chunks * recipe.filter_chunk * fft_plane_bytes(recipe)));
      return recipe.end;
    }
    recipe.sums = recipe.filter +
                  padded_bytes(fft_matrix_bytes(e, filter * e.filter_lines, 2 * e.depths, recipe.factor));
    recipe.end = recipe.sums + padded_bytes(fft_matrix_bytes(e, image * e.image_lines,
                                                             filter * e.filter_lines, recipe.real));
    return recipe.end;
  }

  Offer<Problem> offer_of(FftRecipe recipe) const {
    Offer<Problem> offer;
    if (std::size_t const maximum = limit(); recipe.end > maximum) {
      offer.refusal = fmt::format(
          "transformed to {}x{} frequencies, filters and one slice take {} bytes of workspace; at most {}",
          recipe.rows, recipe.columns / 2 + 1, recipe.end, maximum);
      return offer;
    }
    if (fft_pointwise(form())) {
      if (!policy_.empty()) {
        offer.refusal = "performs no matrix products here; --policy " + policy_.text + " was requested";
        return offer;
      }
      offer.workspace_bytes = recipe.end;
      offer.recipe.algorithm = ConvolutionAlgorithm::fft;
      offer.recipe.own = recipe;
      complete(offer, nullptr);
      return offer;
    }
    Plan<Problem> plan;
    plan.problem = problem_, plan.device = device_;
    plan.recipe.algorithm = ConvolutionAlgorithm::fft;
    plan.recipe.own = recipe;
    PlanOptions of_product = options_;
    of_product.kernel.clear();
    of_product.policy = policy_;
    of_product.max_error.reset();
    of_product.tuning.reset();
    of_product.max_workspace =
        options_.max_workspace - std::min(options_.max_workspace, recipe.end + buffer_alignment);
    try {
      Plan<GemmProblem> const product = make_plan(fft_product(plan).problem, device_, of_product);
      if (product.kernel != name_of(product.recipe.policy.main_loop)) {
        offer.refusal = "the product uses the kernel " + product.kernel;
        return offer;
      }
      offer.workspace_bytes = place(recipe, product.workspace_bytes);
      offer.recipe.algorithm = ConvolutionAlgorithm::fft;
      offer.recipe.own = recipe;
      offer.recipe.product = product.recipe;
      complete(offer, &product);
    } catch (Error const& error) {
      if (error.code() != ErrorCode::bad_request) throw;
      offer.refusal = error.what();
    }
    return offer;
  }

  // `product` is the plan of the matrix product; null for pointwise products of planes.
  void complete(Offer<Problem>& offer, Plan<GemmProblem> const* product) const {
    FftRecipe const& recipe = std::get<FftRecipe>(offer.recipe.own);
    double product_seconds = 0;
    std::string text = "products of planes";
    if (product != nullptr) {
      product_seconds = product->chosen().predicted_seconds;
      text = fmt::format("{} of {}: {}", product->kernel, name_of(recipe.factor), product->chosen().recipe);
    }
    double const transforms = transform_seconds(recipe);
    Planes const planes = planes_of(recipe);
    Index const slices = slices_of(recipe),
                pieces = ceiling_divide(planes.filter, recipe.filter_chunk) +
                         slices * (ceiling_divide(planes.image, recipe.image_chunk) +
                                   ceiling_divide(planes.sums, recipe.sums_chunk));
    auto const forms = static_cast<Index>(forms_.size());
    offer.recipe.launches = static_cast<int>(forms * (3 * pieces + slices));
    offer.predicted_seconds = transforms + real(forms * slices) * product_seconds;
    FftExtents const e = fft_extents(form(), recipe, recipe.slice);
    offer.expected_error = fft_error(recipe.real, recipe.factor, e.depths, e.positions);
    Index const tiles = Index{recipe.tiles_down} * recipe.tiles_across;
    offer.text = fmt::format(
        "transforms of {}x{}, {}, a NaN spreads to its whole tile, expected error {:.2g}, transforms {:.3g} us, {} "
        "launches and {} calls, {}",
        recipe.rows, recipe.columns, tiles == 1 ? "one tile" : std::to_string(tiles) + " tiles",
        offer.expected_error, transforms * 1e6, offer.recipe.launches, forms * pieces, text);
  }

  Index slices_of(FftRecipe const& recipe) const { return ceiling_divide(outers(), recipe.slice); }

  // Time of transforming `planes` planes, with `tensor` bytes and `matrix` bytes of memory traffic at the
  // ends. In between, each plane crosses the L2 cache six times, including the two passes of the FFT library.
  double part_seconds(Index planes, int chunk, FftRecipe const& recipe, double tensor, double matrix) const {
    constexpr double launch_seconds = 2.5e-6, share_of_bandwidth = 0.8, cache_over_memory = 0.55;
    double const bytes = real(planes) * real(fft_plane_bytes(recipe));
    double const rate = device_.gpu.memory_bytes_per_second;
    return real(ceiling_divide(planes, chunk)) * 4 * launch_seconds +
           (tensor + matrix) / (share_of_bandwidth * rate) + 6 * bytes / (cache_over_memory * rate);
  }

  double transform_seconds(FftRecipe const& recipe) const {
    FftExtents const e = fft_extents(form(), recipe, recipe.slice);
    Planes const planes = planes_of(recipe);
    Index const slices = slices_of(recipe);
    TensorDescription const &x = problem_.x, &w = problem_.w, &y = problem_.y;
    auto const bytes = [](TensorDescription const& tensor) {
      return real(tensor.layout.size()) * size_of(tensor.type);
    };
    bool const forward = problem_.direction == ConvolutionDirection::forward, gradient = form().gradient;
    TensorDescription const &image = forward || gradient ? x : y, &filter = gradient ? y : w,
                            &result = forward    ? y
                                      : gradient ? w
                                                 : x;
    Index const lines = recipe.doubled == FftDoubled::image ? 2 : 1;
    auto const matrix = [&](Index count, Index columns, DataType type) {
      return fft_pointwise(form()) ? 0 : real(fft_matrix_bytes(e, count, columns, type));
    };
    double const of_filter = part_seconds(planes.filter, recipe.filter_chunk, recipe, bytes(filter),
                                          matrix((3 - lines) * e.filter_lines, 2 * e.depths, recipe.factor));
    double const of_image =
        part_seconds(planes.image, recipe.image_chunk, recipe, bytes(image) / real(slices),
                     matrix(lines * e.image_lines, 2 * e.depths, recipe.factor));
    double const of_sums = part_seconds(
        planes.sums, recipe.sums_chunk, recipe, bytes(result) / real(slices) / real(forms_.size()),
        matrix(lines * e.image_lines, (3 - lines) * e.filter_lines, recipe.real));
    return real(forms_.size()) * (of_filter + real(slices) * (of_image + of_sums));
  }

  double rough_product_seconds(FftRecipe const& recipe) const {
    if (fft_pointwise(form())) return 0;
    FftExtents const e = fft_extents(form(), recipe, recipe.slice);
    double const products = 4 * real(e.frequencies) * real(e.groups) * real(e.image_lines) * real(e.depths) *
                            real(e.filter_lines);
    Gpu const& gpu = device_.gpu;
    double const rate = 0.6 * (recipe.real == DataType::f64 ? gpu.fma_f64 : gpu.fma_f32) *
                        gpu.multiprocessors * gpu.clock_hertz;
    double const bytes = real(recipe.end - recipe.image);
    return real(slices_of(recipe)) * std::max(products / rate, bytes / (0.8 * gpu.memory_bytes_per_second));
  }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  std::vector<FftForm> const& forms_;
  DataType factor_;
  PolicyRequest policy_;  // of the product
  Index max_extent_;
};

std::string fft_violation(Problem const& problem, Device const& device) {
  for (DataType const type : {problem.x.type, problem.w.type, problem.y.type})
    if (!computes(type))
      return fmt::format("data type {} is not supported; valid types: f64, f32, tf32, f16 and bf16",
                         name_of(type));
  if (problem.x.layout.size() == 0 || problem.w.layout.size() == 0 || problem.y.layout.size() == 0)
    return "there are no elements to transform";
  return device.backend == Backend::emulator ? device.fftw_failure : device.gpu.cufft_failure;
}

}  // namespace

double fft_error(DataType real_type, DataType factor, Index depth, Index positions) {
  // Variances in units of the mean square rounding error: the steps of a transform (measured with FFTW), the
  // rounding of the factors, and sums of 2 * depth products, which count half.
  constexpr double mean_square = 0.18, steps = 3;
  double const u = real_type == DataType::f64 ? 0x1p-53 : 0x1p-24;
  double const of_factor = factor == DataType::tf32 ? 0x1p-11 : 0;
  return std::sqrt(mean_square *
                   (2 * of_factor * of_factor + u * u * (steps * std::log2(real(positions)) + real(depth))));
}

Offer<Problem> fft(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> best;
  best.refusal = problem_violation(problem, device.backend);
  if (best.refusal.empty() && options.policy.tile)
    best.refusal = "does not have Winograd tiles; --policy " + options.policy.text + " was requested";
  if (best.refusal.empty()) best.refusal = fft_violation(problem, device);
  if (best.refusal.empty()) best.refusal = extent_violation(forms_of(problem));
  if (!best.refusal.empty()) return best;
  std::vector<FftForm> const forms = fft_forms(problem);
  DataType const image = forms.front().form.a.type, filter = forms.front().form.b.type;
  std::vector<DataType> factors{forms.front().form.sum == DataType::f64 ? DataType::f64 : DataType::f32};
  if (is_short(image) && is_short(filter) && !fft_pointwise(forms.front())) factors.push_back(DataType::tf32);
  double const limit =
      options.max_error.value_or(options.kernel == "fft" ? 1 : PlanOptions::default_max_error);
  bool first = true;
  for (DataType const factor : factors) {
    Offer<Problem> offer = FftSearch(problem, device, options, forms, factor).best();
    if (offer.refusal.empty() && offer.expected_error > limit)
      offer.refusal = error_sentence(offer.expected_error, limit) +
                      (options.max_error ? "" : "; --max-error or --kernel allows more");
    bool const better =
        offer.refusal.empty() && (!best.refusal.empty() || offer.predicted_seconds < best.predicted_seconds);
    if (first || better) best = std::move(offer);
    first = false;
  }
  return best;
}

}  // namespace cosmati::plan
