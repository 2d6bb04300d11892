// Computes the error bound in double precision, plane by plane.
#include "src/plan/conv/fft/fft_bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/launch.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

struct Norms {
  double square = 0, sum = 0;
};

// The norms of all planes of a chunk.
std::vector<Norms> norms_of(FftPlanesParameters const& all) {
  FftChunk const& chunk = all.chunk;
  std::vector<Norms> norms;
  auto const elements = [](FftAxis const& axis, int extent) {
    return std::min(axis.maximum, (extent - 1) / axis.step.divisor + 1);
  };
  for (int plane = 0; plane < chunk.count; ++plane) {
    int const upper = plane / chunk.depths.divisor, group = upper / chunk.outers.divisor;
    Digits const outer = all.outer.extents.digits(upper % chunk.outers.divisor),
                 depth = all.depth.extents.digits(plane % chunk.depths.divisor);
    Index const first = group * all.group_stride + all.outer.offset(outer) + all.depth.offset(depth);
    int const top = all.row.origin + all.outer.down(outer) + all.depth.down(depth),
              left = all.column.origin + all.outer.right(outer) + all.depth.right(depth);
    Norms made;
    for (int r = 0; r < elements(all.row, chunk.rows); ++r)
      for (int s = 0; s < elements(all.column, chunk.columns); ++s) {
        int const h = top + r, w = left + s;
        if (h < 0 || h >= all.row.size || w < 0 || w >= all.column.size) continue;
        double const value = load(all.type, all.from, first + h * all.row.stride + w * all.column.stride);
        made.square += value * value, made.sum += value;
      }
    norms.push_back(made);
  }
  return norms;
}

class Bound {
 public:
  Bound(Plan<Problem> const& plan, Problem::Arguments const& arguments)
      : problem_(plan.problem), recipe_(std::get<FftRecipe>(plan.recipe.own)), arguments_(arguments) {}

  Tensor of_result() {
    bound_ = Tensor(DataType::f64, problem_.result().layout.shape);
    for (FftForm const& form : fft_forms(problem_)) of_form(form);
    return std::move(bound_);
  }

 private:
  void of_form(FftForm const& form) {
    FftExtents const e = fft_extents(form, recipe_, form.outers);
    ConvolutionPointers const pointers = pointers_of(problem_, form.form, arguments_);
    bool const first = form.form.image_is_a;
    std::vector<Norms> const image = norms_of(fft_image_planes(form, recipe_, first ? pointers.a : pointers.b,
                                                               0, form.outers, 0,
                                                               e.groups * e.image_lines * e.depths, nullptr)),
                             filter =
                                 norms_of(fft_filter_planes(form, recipe_, first ? pointers.b : pointers.a, 0,
                                                            e.groups * e.filter_lines * e.depths, nullptr));
    for (Index group = 0; group < e.groups; ++group)
      for (Index line = 0; line < e.image_lines; ++line)
        for (Index other = 0; other < e.filter_lines; ++other) {
          double const off = of_plane(e, image.data() + (group * e.image_lines + line) * e.depths,
                                      filter.data() + (group * e.filter_lines + other) * e.depths);
          store_plane(form, group, line, other, off);
        }
  }

  double of_plane(FftExtents const& e, Norms const* image, Norms const* filter) const {
    double const positions = static_cast<double>(e.positions), terms = static_cast<double>(e.depths);
    double const u = recipe_.real == DataType::f64 ? 0x1p-53 : 0x1p-24,
                 t = recipe_.factor == DataType::tf32 ? 0x1p-11 : 0;
    double squares = 0, means = 0;
    for (Index c = 0; c < e.depths; ++c) {
      double const mean = image[c].sum * filter[c].sum / std::sqrt(positions);
      squares += image[c].square * filter[c].square + mean * mean;
      means += std::fabs(mean);
    }
    return 6 * std::sqrt(((2 * t * t + 4 * u * u * std::log2(positions)) * squares +
                          2 * terms * u * u * (squares + means * means)) /
                         positions);
  }

  void store_plane(FftForm const& form, Index group, Index line, Index other, double off) {
    FftCrop const crop = fft_crop(form, recipe_, 0, form.outers, 0, 0, nullptr);
    Digits const outer = crop.outer.extents.digits(static_cast<int>(line));
    for (int i = 0; i < crop.tile_outputs; ++i) {
      int const p = crop.outer.down(outer) + i / crop.tile_columns.divisor,
                q = crop.outer.right(outer) + i % crop.tile_columns.divisor;
      if (p >= form.rows.outputs || q >= form.columns.outputs) continue;
      Index const pixel =
          crop.outer.offset(outer) + Index{p} * form.rows.number + Index{q} * form.columns.number;
      Index const m = form.form.image_is_a ? pixel : other, n = form.form.image_is_a ? other : pixel;
      Index at[4];
      char const* const letters = form.gradient ? "kcrs" : "nkpq";
      for (int d = 0; d < 4; ++d) at[d] = form.form.position(letters[d], group, m, n);
      bound_.as<double>()[bound_.layout().offset(at[0], at[1], at[2], at[3])] = off;
    }
  }

  Problem const& problem_;
  FftRecipe const& recipe_;
  Problem::Arguments const& arguments_;
  Tensor bound_;
};

}  // namespace

Tensor fft_bound(Plan<Problem> const& plan, Problem::Arguments const& arguments) {
  return Bound(plan, arguments).of_result();
}

}  // namespace cosmati::plan
