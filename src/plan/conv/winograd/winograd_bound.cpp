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
#include "src/plan/conv/winograd/winograd_phases.h"

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
  // Returns the sum of the squared sums, of products times `of_type` and of absolute values times `of_f32`,
  // and starts over.
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

// Rows or columns of a phase: their positions in the result, and its taps.
struct Phase {
  Index first = 0, step = 1;  // output i of the window is first + i * step of the result
  Index tap = 0, tap_step = 1;
  int front = 0, taps = 3;  // the first tap is multiplied with input `front`

  Phase() = default;
  Phase(WinogradAxis const& axis, Index phase)
      : first(axis.output(phase, axis.first)),
        step(axis.output(phase, axis.first + 1) - first),
        tap_step(-axis.stride),
        taps(static_cast<int>(axis.taps_of(phase))) {
    if (!axis.of_data) tap_step = 1;
    while (taps > 0 && axis.tap(phase, front) < 0) ++front;
    tap = std::max<Index>(axis.tap(phase, front), 0);
  }
  WindowAxis window(WinogradAxis const& axis, Index image_stride, Index filter_stride) const {
    WindowAxis made;
    made.outputs = static_cast<int>(WinogradAxis::tile * axis.tiles);
    made.origin = static_cast<int>(axis.input(axis.first));
    made.size = static_cast<int>(axis.inputs);
    made.image_stride = image_stride;
    made.filter_stride = tap_step * filter_stride;
    return made;
  }
};

template <int tile, int taps>
class Bound {
  using Matrices = WinogradMatrices<tile, taps>;
  static constexpr int size = Matrices::size;

 public:
  Bound(Plan<Problem> const& plan, Problem::Arguments const& arguments)
      : problem_(plan.problem), kept_(unit_roundoff(std::get<WinogradRecipe>(plan.recipe.own).type)) {
    SlidingForm const form = winograd_form(problem_);
    WinogradRecipe const& recipe = std::get<WinogradRecipe>(plan.recipe.own);
    ConvolutionPointers const pointers = pointers_of(problem_, form.form, arguments);
    bool const first = form.form.image_is_a;
    window_ = sliding_arguments(form, first ? pointers.a : pointers.b, first ? pointers.b : pointers.a);
    for (int part = 0; part < winograd_parts(form, recipe); ++part)
      parts_.push_back(winograd_part(form, recipe, part));
  }

  // One phase of the processor's kernel, whose taps may begin at input 1 or 2 of a window.
  Bound(Problem const& problem, Problem::Arguments const& arguments, WinogradAxis const& rows,
        Index row_phase, WinogradAxis const& columns, Index column_phase)
      : problem_(problem),
        kept_(unit_roundoff(DataType::f32)),
        row_(rows, row_phase),
        column_(columns, column_phase) {
    bool const data = rows.of_data;
    Layout const &image = (data ? problem.y : problem.x).layout, &filter = problem.w.layout;
    window_.image = data ? arguments.dy : arguments.x;
    window_.images = static_cast<int>(image.extent(0));
    window_.inputs = static_cast<int>(image.extent(1));
    window_.outputs = static_cast<int>((data ? problem.x : problem.y).extent(1));
    window_.image_stride = image.stride[0];
    window_.image_input = image.stride[1];
    window_.filter_input = filter.stride[data ? 0 : 1];
    window_.filter_output = filter.stride[data ? 1 : 0];
    window_.filter =
        static_cast<float const*>(arguments.w) + row_.tap * filter.stride[2] + column_.tap * filter.stride[3];
    window_.rows = row_.window(rows, image.stride[2], filter.stride[2]);
    window_.columns = column_.window(columns, image.stride[3], filter.stride[3]);
    parts_.push_back({0, 0, row_.taps, column_.taps});
  }

  void write_to(Tensor& bound) {
    for (int k = 0; k < window_.outputs; ++k)
      for (WinogradPart const& part : parts_)
        for (int c = 0; c < window_.inputs; ++c) filters_.push_back(filter(k, c, part));
    std::size_t const terms = parts_.size() * static_cast<std::size_t>(window_.inputs);
    for (std::size_t k = 0; k < filters_.size(); k += terms)
      number_groups(std::span(filters_).subspan(k, terms));
    for (int n = 0; n < window_.images; ++n)
      for (int row = 0; row < window_.rows.outputs; row += tile)
        for (int column = 0; column < window_.columns.outputs; column += tile) of_tile(n, row, column, bound);
  }

 private:
  DataType image_type() const {
    return (problem_.direction == ConvolutionDirection::forward ? problem_.x : problem_.y).type;
  }
  double element(void const* data, DataType type, Index offset) const { return load(type, data, offset); }

  Both filter(int k, int c, WinogradPart const& part) const {
    double value[taps][taps] = {};
    for (int r = 0; r < part.rows; ++r)
      for (int s = 0; s < part.columns; ++s)
        value[row_.front + r][column_.front + s] =
            element(window_.filter, problem_.w.type,
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
        value[i][j] = inside ? element(window_.image, image_type(),
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
      for (int p = 0; p < tile; ++p)
        for (int q = 0; q < tile; ++q) {
          Index const h = row_.first + (row + p) * row_.step, w = column_.first + (column + q) * column_.step;
          if (h < 0 || h >= problem_.result().extent(2) || w < 0 || w >= problem_.result().extent(3))
            continue;
          double square = 0, sum = 0;
          for (int i = 0; i < size; ++i)
            for (int j = 0; j < size; ++j) {
              double const a = static_cast<double>(Matrices::output(p, i)) * Matrices::output(q, j);
              auto const at = static_cast<std::size_t>(i * size + j);
              square += a * a * (squares[at] + (terms + 4) * u * u * sums[at] * sums[at]);
              sum += std::fabs(a) * sums[at];
            }
          bound.as<double>()[bound.layout().offset(n, k, h, w)] = 6 * std::sqrt(square) + 10 * u * sum;
        }
    }
  }

  Problem const& problem_;
  SlidingArguments window_;
  double kept_;
  Phase row_, column_;
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
  Problem const& problem = plan.problem;
  if (problem.direction == ConvolutionDirection::filter)
    return std::get<WinogradRecipe>(plan.recipe.own).tile == 2
               ? FilterBound<2>(problem, arguments).of_result()
               : FilterBound<4>(problem, arguments).of_result();
  bool const forward = problem.direction == ConvolutionDirection::forward;
  Tensor bound(DataType::f64, (forward ? problem.y : problem.x).shape());
  if (plan.device.backend == Backend::cpu) {
    WinogradAxis const rows(problem, 0), columns(problem, 1);
    for (Index i = 0; i < rows.stride; ++i)
      for (Index j = 0; j < columns.stride; ++j)
        Bound<2, 3>(problem, arguments, rows, i, columns, j).write_to(bound);
    return bound;
  }
  auto const& recipe = std::get<WinogradRecipe>(plan.recipe.own);
  if (recipe.taps == 5)
    Bound<4, 5>(plan, arguments).write_to(bound);
  else if (recipe.tile == 2)
    Bound<2, 3>(plan, arguments).write_to(bound);
  else
    Bound<4, 3>(plan, arguments).write_to(bound);
  return bound;
}

}  // namespace cosmati::plan
