// Pooling: the axes of the positions, and the locations of a window's taps.
#include <fmt/format.h>

#include <algorithm>

#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

constexpr Index max_number = Index{1} << 30;  // the largest number that a kernel counts to

std::string violation(PoolingProblem const& problem) {
  for (int i = 0; i < 2; ++i) {
    Index const reach = problem.x.extent(2 + i) + problem.pad_begin[i] + problem.pad_end[i] +
                        problem.window[i] * problem.dilation[i] + problem.stride[i];
    if (reach > max_number)
      return fmt::format(
          "image, padding, window and stride along dimension {} span {} pixels; these kernels support at "
          "most {}",
          2 + i, reach, max_number);
  }
  return {};
}

WindowSide side_of(PoolingProblem const& problem, int i, TensorDescription const* saved) {
  WindowSide side;
  auto const number = [](Index value) { return static_cast<int>(value); };
  side.image = number(problem.x.extent(2 + i));
  side.windows = number(problem.y.extent(2 + i));
  side.taps = number(problem.window[i]);
  side.stride = number(problem.stride[i]);
  side.pad = number(problem.pad_begin[i]);
  side.pad_end = number(problem.pad_end[i]);
  side.dilation = number(problem.dilation[i]);
  side.by_stride = Divisor(side.stride);
  side.by_dilation = Divisor(side.dilation);
  side.tap_step = problem.x.layout.stride[2 + i];
  side.pair_step = problem.y.layout.stride[2 + i];
  side.index_step = saved != nullptr ? saved->layout.stride[2 + i] : 0;
  return side;
}

// Windows that a thread keeps entirely in registers; rows is 0 if they do not fit.
struct Tile {
  WindowPolicy window;
  int width = 1, piece = 1;  // length of a run of windows or channels; of a run of columns of x
};

// True if x can be accessed in runs of `piece` columns and y in runs of `width`.
bool fits_columns(PoolingProblem const& problem, bool forward, int width, int piece) {
  TensorDescription const &x = problem.x, &y = problem.y;
  auto const fits = [](TensorDescription const& tensor, int elements) {
    int const size = size_of(tensor.type), bytes = std::min(16, elements * size);
    if (tensor.layout.stride[3] != 1 || std::max(tensor.alignment, size) % bytes != 0) return false;
    for (int d = 0; d < 3; ++d)
      if (tensor.extent(d) > 1 && tensor.layout.stride[d] * size % bytes != 0) return false;
    return tensor.extent(3) % elements == 0;
  };
  Index const stride = problem.stride[1], lines = problem.window[0];
  Index const span = piece + (width - 1) * stride + problem.window[1] + piece;
  if (width * size_of(y.type) > 16 || piece * size_of(x.type) > 16 || width * stride % piece != 0)
    return false;
  if (lines * span > 72 || problem.pad_begin[1] > 16 || !fits(x, piece) || !fits(y, width)) return false;
  // Runs of dx require windows that cover x without a remainder.
  bool const is_power = (stride & (stride - 1)) == 0;
  auto const run_of_dx = static_cast<int>(std::min<Index>(16 / size_of(x.type), width * stride));
  return forward ||
         (problem.pad_begin[1] == 0 && is_power && y.extent(3) * stride == x.extent(3) && fits(x, run_of_dx));
}

Tile tile_of(PoolingProblem const& problem, int width_of_channels, Index channels, bool channels_first,
             PrimitiveTarget const& target) {
  bool const forward = problem.direction == Direction::forward;
  auto const number = [](Index value) { return static_cast<int>(std::min<Index>(value, 1 << 20)); };
  Tile tile;
  WindowPolicy window{number(problem.window[0]), number(problem.window[1]), number(problem.stride[0]),
                      number(problem.stride[1]), number(problem.pad_begin[1])};
  for (int i = 0; i < 2; ++i) {
    Index const reach = (problem.y.extent(2 + i) - 1) * problem.stride[i] + problem.window[i];
    if (problem.dilation[i] != 1 || problem.window[i] > 16 || problem.stride[i] > 16) return tile;
    if (!forward && problem.window[i] > problem.stride[i]) return tile;
    if (problem.pad_begin[i] != 0 || reach > problem.x.extent(2 + i)) window.padded = true;
  }
  if (!forward && problem.stride[0] * problem.stride[1] > 16) return tile;
  if (target.emulated) {  // the emulator has two kinds of windows
    bool const by_two = problem.stride[0] == 2 && problem.stride[1] == 2 && window.rows == window.columns;
    if (!by_two || !(window.rows == 2 ? !window.padded : window.rows == 3 && window.pad == 1)) return tile;
  }
  // In the gradient, adjacent threads write adjacent runs of 16 bytes.
  int const run_of_dx = std::max(2, 16 / (size_of(problem.x.type) * window.along));
  int const widest = target.emulated ? 4 : forward ? 8 : std::min(8, run_of_dx);
  int const minimum = target.emulated ? 4 : 2;
  for (int width = widest; !channels_first && width >= minimum; width /= 2)
    for (int piece = target.emulated ? 2 : 16; piece >= 2; piece /= 2)
      if (fits_columns(problem, forward, width, piece)) {
        window.runs_of_columns = true;
        return {window, width, piece};
      }
  if (channels % width_of_channels != 0 || window.rows * window.columns * width_of_channels > 80) return tile;
  if (target.emulated && width_of_channels != 4) return tile;
  return {window, width_of_channels, 1};
}

// The tensors of a pooling, and the order in which its kernel visits the dimensions of the result.
struct PoolingSpace {
  std::vector<StridedTensor> inputs, outputs;
  bool channels_first = false;  // the fastest dimension is that of channels or images
  std::vector<int> order;       // dimensions of the result, fastest first
  CollapsedSpace space;
  int width = 1;  // elements of a run

  std::vector<StridedTensor const*> tensors() const {
    std::vector<StridedTensor const*> all;
    for (StridedTensor const& tensor : inputs) all.push_back(&tensor);
    all.push_back(&outputs[0]);
    return all;
  }
  int slowest() const { return order[3]; }
};

PoolingSpace space_of(PoolingProblem const& problem, TensorDescription const& result,
                      PrimitiveTarget const& target) {
  PoolingSpace made;
  if (problem.direction == Direction::forward) {
    made.inputs = {strided("x", problem.x, argument_named(problem, "x"))};
    made.outputs = {strided("y", problem.y, argument_named(problem, "y"))};
  } else {
    made.inputs = {strided("dy", problem.y, argument_named(problem, "dy"))};
    if (problem.backward_needs_x())
      made.inputs.push_back(strided("x", problem.x, argument_named(problem, "x")));
    made.outputs = {strided("dx", problem.x, argument_named(problem, "dx"))};
  }
  // The strides of the windows are separate parameters.
  for (StridedTensor& input : made.inputs) input.stride[2] = input.stride[3] = 0;
  auto const& strides = result.layout.stride;
  auto const is_inner = [&](int d) {
    return result.extent(d) > 1 && strides[d] == 1 && made.inputs[0].stride[d] == 1;
  };
  made.channels_first = is_inner(0) || is_inner(1);
  int const a = is_inner(0) ? 0 : is_inner(1) ? 1 : strides[0] < strides[1] ? 0 : 1, b = 1 - a;
  made.order = made.channels_first ? std::vector<int>{a, 3, 2, b} : std::vector<int>{3, 2, a, b};
  std::vector<StridedTensor const*> const tensors = made.tensors();
  for (int const d : made.order) {
    SpaceAxis axis{result.extent(d), {}};
    for (StridedTensor const* tensor : tensors) axis.stride.push_back(tensor->stride[d]);
    made.space.positions.push_back(std::move(axis));
  }
  if (!made.channels_first) return made;
  // The steps between taps must be multiples of a run as well.
  CollapsedSpace with_taps = made.space;
  for (int i = 0; i < 2; ++i) {
    SpaceAxis axis{2, {}};
    for (std::size_t t = 0; t < tensors.size(); ++t)
      axis.stride.push_back((tensors[t]->name == "dy" ? problem.y : problem.x).layout.stride[2 + i] *
                            (t < made.inputs.size() ? 1 : 0));
    with_taps.positions.push_back(std::move(axis));
  }
  made.width = run_width(tensors, with_taps, false, target, 16);
  return made;
}

// In kernels of whole windows, positions are windows; in the gradient, each covers dx up to the next window.
void count_windows(PoolingSpace& made, PoolingProblem const& problem, Tile const& tile) {
  made.width = tile.width;
  if (problem.direction == Direction::forward) return;
  for (std::size_t d = 0; d < 4; ++d) {
    int const axis = made.order[d];
    if (axis < 2) continue;
    Index const stride = problem.stride[axis - 2];
    made.space.positions[d].extent =
        (problem.x.extent(axis) + problem.pad_begin[axis - 2] + stride - 1) / stride;
    made.space.positions[d].stride.back() = 0;
  }
}

void add_indices(PrimitivePass& pass, PoolingSpace const& made, PoolingProblem const& problem, Index first) {
  bool const forward = problem.direction == Direction::forward;
  TensorDescription const& saved = problem.indices;
  PrimitiveTensor& indices = pass.parameters.tensor[forward ? primitive_inputs + 1 : primitive_inputs - 1];
  indices.type = saved.type;
  for (int d = 0; d < 4; ++d) {
    int const axis = made.order[static_cast<std::size_t>(d)];
    bool const in_window = !forward && axis >= 2;
    indices.stride[d] = in_window ? 0 : saved.layout.stride[axis] * (d == 0 ? made.width : 1);
  }
  indices.run_stride = static_cast<int>(saved.layout.stride[made.order[0]]);
  Binding binding = argument_named(problem, "indices");
  binding.first = first * saved.layout.stride[made.slowest()];
  pass.counts = {{binding, saved.type, false}};
}

// The pass for `count` positions of the slowest dimension from `first` on.
PrimitivePass pass_of(PoolingSpace const& made, PoolingProblem const& problem, Tile const& tile, Index first,
                      Index count) {
  bool const forward = problem.direction == Direction::forward, max = problem.mode == PoolingMode::max;
  TensorDescription const* const saved = problem.indices.present() ? &problem.indices : nullptr;
  CollapsedSpace part = made.space;
  part.positions[3].extent = count;
  std::vector<StridedTensor> all = made.inputs;
  all.push_back(made.outputs[0]);
  PrimitivePass pass;
  pass.family = PrimitiveFamily::windows;
  pass.real = real_of(all);
  fill_space(pass, part, made.inputs, made.outputs, made.width, false);
  PrimitiveParameters& p = pass.parameters;
  if (tile.window.rows > 0) {
    p.policy.window = tile.window;
    p.policy.unroll = tile.piece;
    p.policy.whole = true;
    if (tile.window.runs_of_columns) {
      for (PassTensor& tensor : pass.inputs) tensor.same = false;
      pass.outputs[0].same = false;
      for (PrimitiveTensor& tensor : p.tensor) tensor.run_stride = 1;
    }
  }
  p.policy.columns_axis = made.channels_first ? 1 : 0;
  p.policy.operation = static_cast<int>(problem.mode) + (forward ? 0 : 3);
  p.policy.indices = !max || saved == nullptr ? 0 : saved->type == DataType::s32 ? 1 : 2;
  for (int i = 0; i < 2; ++i) p.window[i] = side_of(problem, i, saved);
  for (std::size_t i = 0; i < made.inputs.size(); ++i)
    pass.inputs[i].binding.first += first * made.inputs[i].stride[made.slowest()];
  pass.outputs[0].binding.first += first * made.outputs[0].stride[made.slowest()];
  if (saved != nullptr) add_indices(pass, made, problem, first);
  pass.blocks = (p.positions + 255) / 256;
  finish(pass, part);
  // A tap that several windows share is read from memory once. The gradient of max pooling reads x and
  // writes dx.
  double const images = forward ? 1 : static_cast<double>(made.inputs.size());
  double const image = images * static_cast<double>(problem.x.layout.size()) * size_of(problem.x.type);
  double const windows = static_cast<double>(problem.y.layout.size()) * size_of(problem.y.type);
  pass.bytes =
      (image + windows) * static_cast<double>(count) / static_cast<double>(made.space.positions[3].extent);
  return pass;
}

}  // namespace

template <>
PrimitiveProgram lower(PoolingProblem const& problem, PrimitiveTarget const& target) {
  PrimitiveProgram program;
  program.refusal = violation(problem);
  TensorDescription const& result = problem.direction == Direction::forward ? problem.y : problem.x;
  if (result.layout.size() == 0 || !program.refusal.empty()) return program;
  PoolingSpace made = space_of(problem, result, target);
  auto const& positions = made.space.positions;
  Tile const tile = tile_of(problem, made.width, positions[0].extent, made.channels_first, target);
  if (tile.window.rows > 0) count_windows(made, problem, tile);
  Index const of_slowest = positions[0].extent * positions[1].extent * positions[2].extent;
  if (of_slowest > max_number) {
    program.refusal = fmt::format("{} positions of one image or channel; these kernels support at most {}",
                                  of_slowest, max_number);
    return program;
  }
  Index const step = std::max<Index>(1, max_number / of_slowest), slowest = positions[3].extent;
  for (Index first = 0; first < slowest; first += step)
    program.passes.push_back(pass_of(made, problem, tile, first, std::min(step, slowest - first)));
  return program;
}

}  // namespace cosmati::plan
