// Computes the error bound in double precision, tile by tile.
#include "src/plan/conv/winograd/winograd_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <numeric>
#include <span>
#include <vector>

#include "cosmati/conv/winograd/winograd_matrices.h"
#include "src/ops/number_types.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/conv/winograd/winograd_filter.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// matrix * value * matrix^T, and the same with the absolute values of all terms. `group`: equal elements of a
// position, among the terms of a sum, have the same number.
struct Both {
  std::vector<double> plain, absolute;
  std::vector<std::size_t> group = {};
};
template <int size, int taken, class Matrix>
Both transformed(Matrix const& matrix, double const (&value)[taken][taken]) {
  Both made{std::vector<double>(size * size), std::vector<double>(size * size)};
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      for (int r = 0; r < taken; ++r)
        for (int s = 0; s < taken; ++s) {
          double const factor = static_cast<double>(matrix(i, r)) * static_cast<double>(matrix(j, s));
          auto const at = static_cast<std::size_t>(i * size + j);
          made.plain[at] += factor * value[r][s];
          made.absolute[at] += std::fabs(factor * value[r][s]);
        }
  return made;
}

void number_groups(std::span<Both> terms) {
  std::size_t const positions = terms.front().plain.size();
  for (Both& term : terms) term.group.resize(positions);
  std::vector<std::size_t> order(terms.size());
  for (std::size_t at = 0; at < positions; ++at) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    auto const value = [&](std::size_t i) { return terms[i].plain[at]; };
    // A total order: the data may hold NaN.
    std::sort(order.begin(), order.end(),
              [&](std::size_t x, std::size_t y) { return std::strong_order(value(x), value(y)) < 0; });
    std::size_t group = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && value(order[i]) != value(order[i - 1])) ++group;
      terms[order[i]].group[at] = group;
    }
  }
}

// Equal factors have the same rounding error, which multiplies the sum of their products: with equal channels
// errors grow like the number of channels, otherwise like its square root.
class SumsOfGroups {
 public:
  explicit SumsOfGroups(std::size_t terms) : sums_(terms) {}
  void add(std::size_t group, double product, double absolute) {
    sums_[group][0] += product;
    sums_[group][1] += absolute;
    count_ = std::max(count_, group + 1);
  }
  // The sum of the squares of products, each times `of_type`, and of absolute values; begins again.
  double squares(double of_type, double of_f32) {
    double sum = 0;
    for (std::size_t i = 0; i < count_; ++i)
      sum += of_type * sums_[i][0] * sums_[i][0] + of_f32 * sums_[i][1] * sums_[i][1];
    std::fill_n(sums_.begin(), count_, std::array<double, 2>{});
    count_ = 0;
    return sum;
  }

 private:
  std::vector<std::array<double, 2>> sums_;
  std::size_t count_ = 0;
};

template <int tile, int taps>
class Bound {
  using Matrices = WinogradMatrices<tile, taps>;
  static constexpr int size = Matrices::size;

 public:
  Bound(Plan<Problem> const& plan, Problem::Arguments const& arguments)
      : problem_(plan.problem),
        form_(winograd_form(plan.problem)),
        recipe_(std::get<WinogradRecipe>(plan.recipe.own)),
        kept_(unit_roundoff(recipe_.type)) {
    ConvolutionPointers const pointers = pointers_of(problem_, form_.form, arguments);
    bool const first = form_.form.image_is_a;
    window_ = sliding_arguments(form_, first ? pointers.a : pointers.b, first ? pointers.b : pointers.a);
  }

  Tensor of_result() {
    bool const forward = problem_.direction == ConvolutionDirection::forward;
    Tensor bound(DataType::f64, (forward ? problem_.y : problem_.x).shape());
    for (int part = 0; part < winograd_parts(form_, recipe_); ++part)
      parts_.push_back(winograd_part(form_, recipe_, part));
    for (int k = 0; k < window_.outputs; ++k)
      for (WinogradPart const& part : parts_)
        for (int c = 0; c < window_.inputs; ++c) filters_.push_back(filter(k, c, part));
    std::size_t const terms = parts_.size() * static_cast<std::size_t>(window_.inputs);
    for (std::size_t k = 0; k < filters_.size(); k += terms)
      number_groups(std::span(filters_).subspan(k, terms));
    for (int n = 0; n < window_.images; ++n)
      for (int row = 0; row < window_.rows.outputs; row += tile)
        for (int column = 0; column < window_.columns.outputs; column += tile) of_tile(n, row, column, bound);
    return bound;
  }

 private:
  double element(void const* data, DataType type, Index offset) const { return load(type, data, offset); }

  Both filter(int k, int c, WinogradPart const& part) const {
    double value[taps][taps] = {};
    for (int r = 0; r < part.rows; ++r)
      for (int s = 0; s < part.columns; ++s)
        value[r][s] = element(window_.filter, problem_.w.type,
                              k * window_.filter_output + c * window_.filter_input +
                                  (part.row + r) * window_.rows.filter_stride +
                                  (part.column + s) * window_.columns.filter_stride);
    return transformed<size>(&Matrices::filter, value);
  }
  Both image(int n, int c, int row, int column) const {
    double value[size][size];
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        int const h = window_.rows.origin + row + i, w = window_.columns.origin + column + j;
        bool const inside = h >= 0 && h < window_.rows.size && w >= 0 && w < window_.columns.size;
        value[i][j] = inside ? element(window_.image, form_.form.image().type,
                                       n * window_.image_stride + c * window_.image_input +
                                           h * window_.rows.image_stride + w * window_.columns.image_stride)
                             : 0;
      }
    return transformed<size>(&Matrices::input, value);
  }

  void of_tile(int n, int row, int column, Tensor& bound) const {
    constexpr double u = 0x1p-24;
    constexpr std::size_t positions = size * size;
    std::vector<Both> images;  // (parts, inputs)
    for (WinogradPart const& part : parts_)
      for (int c = 0; c < window_.inputs; ++c)
        images.push_back(image(n, c, row + part.row, column + part.column));
    number_groups(images);
    double const terms = static_cast<double>(images.size());
    SumsOfGroups of_filters(images.size()), of_images(images.size());
    for (int k = 0; k < window_.outputs; ++k) {
      double squares[positions] = {}, sums[positions] = {};
      Both const* const filter = &filters_[static_cast<std::size_t>(k) * images.size()];
      for (std::size_t at = 0; at < positions; ++at) {
        for (std::size_t term = 0; term < images.size(); ++term) {
          Both const &f = filter[term], &v = images[term];
          double const product = f.plain[at] * v.plain[at];
          of_filters.add(f.group[at], product, f.absolute[at] * v.plain[at]);
          of_images.add(v.group[at], product, f.plain[at] * v.absolute[at]);
          sums[at] += std::fabs(product);
        }
        squares[at] =
            of_filters.squares(kept_ * kept_, 8 * u * u) + of_images.squares(kept_ * kept_, 8 * u * u);
      }
      for (int p = 0; p < tile && row + p < window_.rows.outputs; ++p)
        for (int q = 0; q < tile && column + q < window_.columns.outputs; ++q) {
          double square = 0, sum = 0;
          for (int i = 0; i < size; ++i)
            for (int j = 0; j < size; ++j) {
              double const a = static_cast<double>(Matrices::output(p, i)) * Matrices::output(q, j);
              auto const at = static_cast<std::size_t>(i * size + j);
              square += a * a * (squares[at] + (terms + 4) * u * u * sums[at] * sums[at]);
              sum += std::fabs(a) * sums[at];
            }
          bound.as<double>()[bound.layout().offset(n, k, row + p, column + q)] =
              6 * std::sqrt(square) + 10 * u * sum;
        }
    }
  }

  Problem const& problem_;
  SlidingForm form_;
  SlidingArguments window_;
  WinogradRecipe const& recipe_;
  double kept_;
  std::vector<WinogradPart> parts_;
  std::vector<Both> filters_;  // (outputs, parts, inputs)
};

// Accumulates the same sums over all tiles, for each pair of channels.
template <int tile>
class FilterBound {
  using Matrices = WinogradMatrices<tile>;
  static constexpr int size = Matrices::size, taps = Matrices::taps;
  static constexpr std::size_t positions = size * size;
  struct Sums {
    double squares[positions] = {}, sums[positions] = {};
  };

 public:
  FilterBound(Problem const& problem, Problem::Arguments const& arguments)
      : problem_(problem),
        form_(winograd_form(forward_of(problem))),
        window_(sliding_arguments(form_, arguments.x, nullptr)),
        dy_(arguments.dy),
        filters_(static_cast<std::size_t>(problem.w.extent(0))),
        channels_(static_cast<std::size_t>(problem.w.extent(1))),
        all_(filters_ * channels_) {}

  Tensor of_result() {
    Index tiles = 0;
    for (int n = 0; n < window_.images; ++n)
      for (int row = 0; row < window_.rows.outputs; row += tile)
        for (int column = 0; column < window_.columns.outputs; column += tile, ++tiles) add(n, row, column);
    Tensor bound(DataType::f64, problem_.w.shape());
    for (std::size_t i = 0; i < all_.size(); ++i)
      for (int r = 0; r < taps; ++r)
        for (int s = 0; s < taps; ++s)
          bound.as<double>()[bound.layout().offset(static_cast<Index>(i / channels_),
                                                   static_cast<Index>(i % channels_), r, s)] =
              of_tap(all_[i], r, s, static_cast<double>(tiles));
    return bound;
  }

 private:
  // The transform of a block of taken x taken elements.
  template <int taken, class Matrix, class Element>
  static Both block(Matrix const& matrix, Element const& element) {
    double value[taken][taken];
    for (int i = 0; i < taken; ++i)
      for (int j = 0; j < taken; ++j) value[i][j] = element(i, j);
    return transformed<size>(matrix, value);
  }
  void add(int n, int row, int column) {
    std::vector<Both> gradients, images;
    for (std::size_t k = 0; k < filters_; ++k)
      gradients.push_back(block<tile>(&Matrices::gradient, [&](int p, int q) {
        if (row + p >= window_.rows.outputs || column + q >= window_.columns.outputs) return 0.0;
        return load(problem_.y.type, dy_,
                    problem_.y.layout.offset(n, static_cast<Index>(k), row + p, column + q));
      }));
    for (std::size_t c = 0; c < channels_; ++c)
      images.push_back(block<size>(&Matrices::input, [&](int i, int j) {
        int const h = window_.rows.origin + row + i, w = window_.columns.origin + column + j;
        if (h < 0 || h >= window_.rows.size || w < 0 || w >= window_.columns.size) return 0.0;
        return load(problem_.x.type, window_.image,
                    n * window_.image_stride + static_cast<Index>(c) * window_.image_input +
                        h * window_.rows.image_stride + w * window_.columns.image_stride);
      }));
    for (std::size_t i = 0; i < all_.size(); ++i) {
      Both const &f = gradients[i / channels_], &v = images[i % channels_];
      for (std::size_t at = 0; at < positions; ++at) {
        double const product = f.plain[at] * v.plain[at], of_f = f.absolute[at] * v.plain[at],
                     of_v = f.plain[at] * v.absolute[at];
        all_[i].squares[at] += 2 * u * u * product * product + 8 * u * u * (of_f * of_f + of_v * of_v);
        all_[i].sums[at] += std::fabs(product);
      }
    }
  }
  double of_tap(Sums const& of, int r, int s, double terms) const {
    double square = 0, sum = 0;
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        double const a = static_cast<double>(Matrices::tap(r, i)) * Matrices::tap(s, j);
        auto const at = static_cast<std::size_t>(i * size + j);
        square += a * a * (of.squares[at] + (terms + 4) * u * u * of.sums[at] * of.sums[at]);
        sum += std::fabs(a) * of.sums[at];
      }
    return 6 * std::sqrt(square) + 10 * u * sum;
  }

  static constexpr double u = 0x1p-24;
  Problem const& problem_;
  SlidingForm form_;
  SlidingArguments window_;
  void const* dy_;
  std::size_t filters_, channels_;
  std::vector<Sums> all_;  // (filters, channels)
};

}  // namespace

Tensor winograd_bound(Plan<Problem> const& plan, Problem::Arguments const& arguments) {
  auto const& recipe = std::get<WinogradRecipe>(plan.recipe.own);
  int const tile = recipe.tile;
  if (plan.problem.direction == ConvolutionDirection::filter)
    return tile == 2 ? FilterBound<2>(plan.problem, arguments).of_result()
                     : FilterBound<4>(plan.problem, arguments).of_result();
  if (recipe.taps == 5) return Bound<4, 5>(plan, arguments).of_result();
  return tile == 2 ? Bound<2, 3>(plan, arguments).of_result() : Bound<4, 3>(plan, arguments).of_result();
}

}  // namespace cosmati::plan
