// Divides a convolution of volumes into convolutions of planes.
#include "src/plan/conv/nested/depth_division.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/conv/nested/inner_plans.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// The planes first + i * step of a volume, i < count.
struct Planes {
  Index first = 0, step = 1, count = 0;
};

// How planes become images: all together, or as batches of the planes of one image, or of one plane of all
// images.
enum class Batches { one, by_image, by_plane };

PlaneView aligned(PlaneView view) {
  while (view.base % view.tensor.alignment != 0 || view.next % view.tensor.alignment != 0)
    view.tensor.alignment /= 2;
  return view;
}

PlaneView view_of(TensorDescription const& volume, Planes const& planes, Batches batches) {
  Layout const& from = volume.layout;
  Index const images = from.extent(0), size = size_of(volume.type);
  Index const of_image = from.stride[0], of_plane = from.stride[2] * planes.step;
  bool const along_images = batches == Batches::by_plane || (batches == Batches::one && planes.count == 1);
  PlaneView view{volume, from.stride[2] * planes.first * size, 0};
  view.next = batches == Batches::by_image   ? of_image * size
              : batches == Batches::by_plane ? of_plane * size
                                             : 0;
  Index const count = batches == Batches::by_image   ? planes.count
                      : batches == Batches::by_plane ? images
                                                     : images * planes.count;
  view.tensor.layout = row_major({count, from.extent(1), from.extent(3), from.extent(4)});
  Index const strides[] = {along_images ? of_image : of_plane, from.stride[1], from.stride[3],
                           from.stride[4]};
  std::copy(strides, strides + 4, view.tensor.layout.stride);
  return aligned(view);
}

bool are_images(TensorDescription const& volume, Planes const& planes) {
  Layout const& layout = volume.layout;
  return layout.extent(0) == 1 || planes.count == 1 ||
         layout.stride[0] == planes.count * planes.step * layout.stride[2];
}

// `of_x` are the planes of x or dx, `of_y` those of y or dy.
Batches batches_of(TensorDescription const& x, Planes const& of_x, TensorDescription const& y,
                   Planes const& of_y, bool batch_invariant) {
  if (batch_invariant) return Batches::by_image;
  if (are_images(x, of_x) && are_images(y, of_y)) return Batches::one;
  return of_y.count >= y.extent(0) ? Batches::by_image : Batches::by_plane;
}

Index count_of(Batches batches, Problem const& volumes, Planes const& planes) {
  return batches == Batches::one ? 1 : batches == Batches::by_image ? volumes.y.extent(0) : planes.count;
}

// Positions of windows along the depth: d = o * stride + t * dilation - pad_begin.
struct Axis {
  Index image, outputs, taps, stride, pad, dilation;
  explicit Axis(Problem const& p)
      : image(p.x.extent(2)),
        outputs(p.y.extent(2)),
        taps(p.w.extent(2)),
        stride(p.depth.stride),
        pad(p.depth.pad_begin),
        dilation(p.depth.dilation) {}
  Index place(Index window, Index tap) const { return window * stride + tap * dilation - pad; }
  bool inside(Index at) const { return at >= 0 && at < image; }
  // Returns the window whose tap `tap` is at `at`, or -1.
  Index window_at(Index at, Index tap) const {
    Index const start = at + pad - tap * dilation;
    return start >= 0 && start % stride == 0 && start / stride < outputs ? start / stride : -1;
  }
};

// The result's planes with the same taps.
struct PlaneGroup {
  Planes planes;
  std::vector<Index> taps;
};

std::vector<PlaneGroup> groups_of(Problem const& problem) {
  Axis const axis(problem);
  bool const data = problem.direction == ConvolutionDirection::data;
  Index const phases = data ? axis.stride : 1, planes = data ? axis.image : axis.outputs;
  std::vector<PlaneGroup> groups;
  for (Index phase = 0; phase < std::min(phases, planes); ++phase)
    for (Index at = phase; at < planes; at += phases) {
      std::vector<Index> taps;
      for (Index tap = 0; tap < axis.taps; ++tap)
        if (data ? axis.window_at(at, tap) >= 0 : axis.inside(axis.place(at, tap))) taps.push_back(tap);
      if (at != phase && groups.back().taps == taps)
        ++groups.back().planes.count;
      else
        groups.push_back({{at, phases, 1}, std::move(taps)});
    }
  return groups;
}

Problem without_depth(Problem const& volumes, PlaneView const& x, PlaneView const& w, PlaneView const& y) {
  Problem planes = volumes;
  planes.x = x.tensor, planes.w = w.tensor, planes.y = y.tensor;
  planes.db = {};
  planes.depth = {};
  planes.epilogue = {};
  return planes;
}

// The parts of a forward convolution or data gradient whose result is `result`.
std::vector<PlanePart> parts_of(Problem const& problem, TensorDescription const& result,
                                bool batch_invariant) {
  static epilogue::Expression const sum =
      epilogue::parse("acc + before[n, k, p, q]", epilogue::convolution_indices);
  Axis const axis(problem);
  bool const data = problem.direction == ConvolutionDirection::data;
  std::vector<PlanePart> parts;
  auto const add = [&](Planes const& of_x, Planes const& of_y, Index tap, bool empty) {
    TensorDescription x = data ? result : problem.x, y = data ? problem.y : result, w = problem.w;
    // A sum over no channels is 0.
    if (empty) w.layout.shape[data ? 0 : 1] = (data ? y : x).layout.shape[1] = 0;
    Batches const batches = batches_of(x, of_x, y, of_y, batch_invariant);
    PlanePart part{{}, view_of(x, of_x, batches), tap_of(w, tap), view_of(y, of_y, batches)};
    part.problem = without_depth(problem, part.x, part.w, part.y);
    part.batches = count_of(batches, problem, of_y);
    part.tap = tap;
    parts.push_back(std::move(part));
  };
  for (PlaneGroup const& group : groups_of(problem)) {
    Planes const& planes = group.planes;
    if (group.taps.empty()) {
      Planes const others{0, 0, planes.count};
      add(data ? planes : others, data ? others : planes, 0, true);
    }
    for (Index const tap : group.taps) {
      Planes const others{data ? axis.window_at(planes.first, tap) : axis.place(planes.first, tap),
                          data ? 1 : axis.stride, planes.count};
      add(data ? planes : others, data ? others : planes, tap, false);
      if (tap == group.taps.front()) continue;
      PlanePart& part = parts.back();
      part.adds = true;
      part.problem.epilogue = {sum, {(data ? part.x : part.y).tensor}, {}};
    }
  }
  return parts;
}

// The filter gradients of each tap and batch, to be summed: (batch, k, c, r, s) in the accumulator's type;
// first_of[t] is the first batch of tap t.
struct FilterParts {
  std::vector<PlanePart> parts;
  std::vector<Index> first_of;
};
TensorDescription sums_of_taps(Problem const& p, Index batches) {
  return describe(accumulator_type(p.x.type, p.y.type),
                  Shape(batches, p.w.extent(0), p.w.extent(1), p.w.extent(3), p.w.extent(4)));
}

FilterParts filter_parts_of(Problem const& problem) {
  Axis const axis(problem);
  FilterParts all;
  all.first_of.push_back(0);
  TensorDescription const sums = sums_of_taps(problem, 1);
  for (Index tap = 0; tap < axis.taps; ++tap) {
    Planes of_y{0, 1, 0};
    for (Index o = axis.outputs - 1; o >= 0; --o)
      if (axis.inside(axis.place(o, tap))) of_y.first = o, ++of_y.count;
    Planes const of_x{of_y.count == 0 ? 0 : axis.place(of_y.first, tap), axis.stride, of_y.count};
    Batches const batches =
        of_y.count == 0 ? Batches::one : batches_of(problem.x, of_x, problem.y, of_y, false);
    PlanePart part{{}, view_of(problem.x, of_x, batches), {}, view_of(problem.y, of_y, batches)};
    part.w.tensor =
        describe(sums.type, Shape(sums.extent(1), sums.extent(2), sums.extent(3), sums.extent(4)));
    part.w.tensor.alignment = size_of(sums.type);
    part.problem = without_depth(problem, part.x, part.w, part.y);
    part.batches = count_of(batches, problem, of_y);
    part.tap = tap;
    all.first_of.push_back(all.first_of.back() + part.batches);
    all.parts.push_back(std::move(part));
  }
  return all;
}

// A dense tensor of `type` with the dimensions in the memory order of `model`.
TensorDescription dense_like(TensorDescription const& model, DataType type) {
  Layout layout = model.layout;
  std::array<int, 5> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return model.layout.stride[a] < model.layout.stride[b]; });
  Index step = 1;
  for (int const d : order) {
    layout.stride[d] = step;
    step *= layout.extent(d);
  }
  return {type, layout};
}

// Converts the epilogue of a convolution of volumes, (n, k, o, p, q), to that of an element (n, c, d, h, w).
epilogue::Expression element_expression(epilogue::Expression const& given) {
  epilogue::Expression::Contents contents{given.text(),         given.nodes(),  given.scalars(),
                                          given.operands(),     given.stores(), given.result(),
                                          given.source_column()};
  std::span<std::string_view const> const letters = elementwise_indices(5);
  for (epilogue::Operand& operand : contents.operands)
    for (std::string& index : operand.indices)
      index = letters[static_cast<std::size_t>(
          std::find(std::begin(volume_indices), std::end(volume_indices), index) -
          std::begin(volume_indices))];
  contents.text =
      to_string(epilogue::Expression(std::make_shared<epilogue::Expression::Contents const>(contents)));
  return epilogue::parse(contents.text, letters);
}

}  // namespace

// The tap `tap` along the depth of a filter.
PlaneView tap_of(TensorDescription const& filter, Index tap) {
  Layout const& from = filter.layout;
  PlaneView view{filter, from.stride[2] * tap * size_of(filter.type), 0};
  view.tensor.layout = row_major({from.extent(0), from.extent(1), from.extent(3), from.extent(4)});
  Index const strides[] = {from.stride[0], from.stride[1], from.stride[3], from.stride[4]};
  std::copy(strides, strides + 4, view.tensor.layout.stride);
  return aligned(view);
}

// dw[:, :, tap] as a sum of partial gradients.
ReduceProblem sum_of_tap(Problem const& problem, PlanePart const& part) {
  ReduceProblem sum{ReduceOperation::sum, sums_of_taps(problem, part.batches), problem.w};
  sum.x.alignment = size_of(sum.x.type);
  PlaneView const to = tap_of(problem.w, part.tap);
  sum.y = to.tensor;
  Layout const tap = sum.y.layout;
  sum.y.layout.shape = Shape(1, tap.extent(0), tap.extent(1), tap.extent(2), tap.extent(3));
  for (int d = 4; d > 0; --d) sum.y.layout.stride[d] = tap.stride[d - 1];
  sum.y.layout.stride[0] = 0;
  return sum;
}

ReduceProblem sum_for_bias(Problem const& problem) {
  ReduceProblem sum{ReduceOperation::sum, problem.y, problem.db};
  sum.y.layout = {{1, problem.db.extent(0), 1, 1, 1}, {0, problem.db.layout.stride[0], 0, 0, 0}};
  return sum;
}

std::size_t PlaneDivision::sum_bytes() const {
  return sums.present() ? padded_bytes(static_cast<std::size_t>(sums.bytes())) : 0;
}

PlaneDivision division_of(Problem const& problem, bool batch_invariant) {
  PlaneDivision division;
  if (problem.direction == ConvolutionDirection::bias) return division;
  if (problem.direction == ConvolutionDirection::filter) {
    FilterParts filter = filter_parts_of(problem);
    division.parts = std::move(filter.parts), division.first_of = std::move(filter.first_of);
    division.sums = sums_of_taps(problem, division.first_of.back());
    return division;
  }
  bool const data = problem.direction == ConvolutionDirection::data;
  TensorDescription const& result = problem.result();
  DataType const sum = accumulator_type(data ? problem.y.type : problem.x.type, problem.w.type);
  if (result.layout.size() == 0) return division;
  bool const plain = problem.epilogue.expression == epilogue::Expression();
  if (plain && (result.type == sum || problem.w.extent(2) == 1)) {
    division.parts = parts_of(problem, result, batch_invariant);
    return division;
  }
  division.sums = dense_like(result, sum);
  division.parts = parts_of(problem, division.sums, batch_invariant);
  Epilogue end = problem.epilogue;
  if (!plain) end.expression = element_expression(end.expression);
  division.epilogue = ElementwiseProblem{division.sums, result, std::move(end)};
  return division;
}

}  // namespace cosmati::plan
