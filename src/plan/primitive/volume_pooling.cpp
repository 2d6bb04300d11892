// A pooling of volumes as two poolings of images, and its gradient.
#include "src/plan/primitive/volume_pooling.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "cosmati/ops/elementwise_expression.h"
#include "src/plan/buffers.h"

namespace cosmati::plan {
namespace {

using Problem = PoolingProblem;

// Merges dimensions `outer` and `outer + 1` of a layout; returns false if they have no common stride.
bool merge(Layout& layout, int outer) {
  int const inner = outer + 1;
  bool const one = layout.extent(outer) == 1 || layout.extent(inner) == 1 ||
                   layout.stride[outer] == layout.extent(inner) * layout.stride[inner];
  Layout merged;
  for (int d = 0; d < layout.rank(); ++d) {
    if (d == inner) continue;
    int const to = merged.shape.rank++;
    merged.shape[to] = d == outer ? layout.extent(outer) * layout.extent(inner) : layout.extent(d);
    merged.stride[to] = d == outer && layout.extent(inner) > 1 ? layout.stride[inner] : layout.stride[d];
  }
  layout = merged;
  return one;
}

TensorDescription with(TensorDescription const& tensor, Layout const& layout) {
  return {tensor.type, layout, tensor.alignment};
}

// How planes become images: the depth is merged with channels, or with images; none if the strides allow
// neither.
enum class Planes { with_channels, with_images, none };
bool merges(TensorDescription const& volume, Planes planes) {
  Layout layout = planes == Planes::with_channels ? volume.layout : volume.layout.permuted(0, 2, 1, 3, 4);
  return merge(layout, planes == Planes::with_channels ? 1 : 0);
}
TensorDescription planes_of(TensorDescription const& volume, Planes planes) {
  Layout layout = planes == Planes::with_channels ? volume.layout : volume.layout.permuted(0, 2, 1, 3, 4);
  merge(layout, planes == Planes::with_channels ? 1 : 0);
  return with(volume, layout);
}

// Whether rows and columns merge: (n, c, d, p * q).
bool merges_lines(TensorDescription const& volume) {
  Layout layout = volume.layout;
  return merge(layout, 3);
}
TensorDescription lines_of(TensorDescription const& volume) {
  Layout layout = volume.layout;
  merge(layout, 3);
  return with(volume, layout);
}

// A dense tensor of this shape, with its dimensions in the memory order of `model`.
TensorDescription dense_like(TensorDescription const& model, Shape const& shape, DataType type) {
  std::array<int, 5> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    auto const key = [&](int d) { return model.extent(d) == 1 ? Index{1} << 62 : model.layout.stride[d]; };
    return key(a) != key(b) ? key(a) < key(b) : a > b;
  });
  Layout layout{shape, {}};
  Index step = 1;
  for (int const d : order) {
    layout.stride[d] = step;
    step *= shape[d];
  }
  return {type, layout};
}

// The two passes, and the tensors between them: the pooled planes (n, c, d, p, q) and, for the gradient of a
// maximum, the pooled volumes and the taps of both maxima; and dense copies of x and y if their dimensions do
// not merge. Each is absent if it is not needed.
struct Passes {
  std::optional<Problem> planes, depth;        // forward, also to find the maxima for backward
  std::optional<Problem> to_planes, to_image;  // backward: along the depth, then in each plane
  TensorDescription pooled, plane_taps, result, depth_taps, gradient, x, y;
  // Visits all tensors in the workspace.
  template <class Visit>
  void visit(Visit&& visit) const {
    for (TensorDescription const* tensor : {&pooled, &plane_taps, &result, &depth_taps, &gradient, &x, &y})
      visit(*tensor);
  }
};

// The type in which averages and gradients are added.
DataType sum_type(Problem const& problem) {
  for (DataType const type : {problem.x.type, problem.y.type})
    if (type == DataType::f64 || is_integer(type)) return DataType::f64;
  return DataType::f32;
}

Problem image_pooling(Problem const& volumes, Direction direction) {
  Problem images = volumes;
  images.direction = direction;
  images.indices = {};
  images.depth = {};
  return images;
}

// The planes of dense volumes merge with their channels or with their images.
Planes planes_of(TensorDescription const& x, TensorDescription const& between) {
  for (Planes const planes : {Planes::with_channels, Planes::with_images})
    if (merges(x, planes) && merges(between, planes)) return planes;
  return Planes::none;
}

Passes passes_of(Problem problem) {
  bool const max = problem.mode == PoolingMode::max, forward = problem.direction == Direction::forward;
  Shape const pooled(problem.x.extent(0), problem.x.extent(1), problem.x.extent(2), problem.y.extent(3),
                     problem.y.extent(4));
  auto const& depth = problem.depth;
  Passes passes;
  auto const between = [&](DataType type) { return dense_like(problem.x, pooled, type); };
  Planes planes = planes_of(problem.x, between(DataType::f32));
  if (planes == Planes::none) {
    problem.x = passes.x = describe(problem.x.type, problem.x.shape());
    planes = Planes::with_channels;
  }
  if (!merges_lines(problem.y) || !merges_lines(between(DataType::f32)))
    problem.y = passes.y = describe(problem.y.type, problem.y.shape());
  auto const in_planes = [&](Direction direction, TensorDescription const& from) {
    Problem pass = image_pooling(problem, direction);
    pass.x = planes_of(problem.x, planes), pass.y = planes_of(from, planes);
    return pass;
  };
  auto const along_depth = [&](Direction direction, TensorDescription const& from,
                               TensorDescription const& to) {
    Problem pass = image_pooling(problem, direction);
    pass.x = lines_of(from), pass.y = lines_of(to);
    std::copy_n(std::array<Index, 2>{depth.window, 1}.begin(), 2, pass.window);
    std::copy_n(std::array<Index, 2>{depth.stride, 1}.begin(), 2, pass.stride);
    std::copy_n(std::array<Index, 2>{depth.pad_begin, 0}.begin(), 2, pass.pad_begin);
    std::copy_n(std::array<Index, 2>{depth.pad_end, 0}.begin(), 2, pass.pad_end);
    std::copy_n(std::array<Index, 2>{depth.dilation, 1}.begin(), 2, pass.dilation);
    return pass;
  };
  auto const taps = [](Index count) { return count <= 256 ? DataType::u8 : DataType::s32; };
  if (forward || max) {
    passes.pooled = between(max ? problem.x.type : sum_type(problem));
    passes.planes = in_planes(Direction::forward, passes.pooled);
    passes.depth = along_depth(Direction::forward, passes.pooled, problem.y);
  }
  if (forward) return passes;
  passes.gradient = between(sum_type(problem));
  passes.to_planes = along_depth(Direction::backward, passes.gradient, problem.y);
  passes.to_image = in_planes(Direction::backward, passes.gradient);
  if (!max) return passes;
  passes.result = dense_like(problem.y, problem.y.shape(), problem.x.type);
  passes.depth = along_depth(Direction::forward, passes.pooled, passes.result);
  passes.plane_taps = between(taps(problem.window[0] * problem.window[1]));
  passes.planes->indices = passes.to_image->indices = planes_of(passes.plane_taps, planes);
  passes.depth_taps = dense_like(problem.y, problem.y.shape(), taps(depth.window));
  passes.depth->indices = passes.to_planes->indices = lines_of(passes.depth_taps);
  return passes;
}

// Copies `from` to `to`, element by element.
ElementwiseProblem copying(TensorDescription const& from, TensorDescription const& to) {
  return {from, to, {}};
}

PlanOptions options_within(std::size_t workspace_bytes, bool batch_invariant) {
  PlanOptions options;
  options.max_workspace = workspace_bytes / buffer_alignment * buffer_alignment;
  options.batch_invariant = batch_invariant;
  return options;
}

std::size_t bytes_of(Passes const& passes) {
  std::size_t bytes = 0;
  passes.visit([&](TensorDescription const& tensor) {
    if (tensor.present()) bytes += padded_bytes(static_cast<std::size_t>(tensor.bytes()));
  });
  return bytes;
}

// The copies of arguments and of the result whose dimensions do not merge. x and dx share one, since dx is
// written last.
struct Copies {
  std::optional<ElementwiseProblem> x_in, y_in, result_out;
};
Copies copies_of(Problem const& problem, Passes const& passes) {
  bool const forward = problem.direction == Direction::forward;
  Copies copies;
  if (passes.x.present() && (forward || problem.mode == PoolingMode::max))
    copies.x_in = copying(problem.x, passes.x);
  if (passes.y.present() && !forward) copies.y_in = copying(problem.y, passes.y);
  TensorDescription const &result = forward ? problem.y : problem.x, &copy = forward ? passes.y : passes.x;
  if (copy.present()) copies.result_out = copying(copy, result);
  return copies;
}

class VolumePooling final : public Kernel<Problem> {
 public:
  explicit VolumePooling(Plan<Problem> const& plan)
      : passes_(passes_of(plan.problem)), scratch_(plan.workspace_bytes - bytes_of(passes_)) {
    PlanOptions const options = options_within(scratch_, plan.batch_invariant);
    auto const make = [&](auto const& pass) {
      return pass ? std::optional(cosmati::prepare(make_plan(*pass, plan.device, options))) : std::nullopt;
    };
    Copies const copies = copies_of(plan.problem, passes_);
    x_in_ = make(copies.x_in), y_in_ = make(copies.y_in), result_out_ = make(copies.result_out);
    planes_ = make(passes_.planes), depth_ = make(passes_.depth);
    to_planes_ = make(passes_.to_planes), to_image_ = make(passes_.to_image);
  }

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    std::array<std::byte*, 7> at{};
    std::byte* next = workspace + scratch_;
    std::size_t i = 0;
    passes_.visit([&](TensorDescription const& tensor) {
      if (tensor.present()) at[i] = next, next += padded_bytes(static_cast<std::size_t>(tensor.bytes()));
      ++i;
    });
    auto const [pooled, plane_taps, result, depth_taps, gradient, x_copy, y_copy] = at;
    void const* const x = x_in_ ? x_copy : arguments.x;
    void const* const dy = y_in_ ? y_copy : arguments.dy;
    void* const dx = x_copy != nullptr ? x_copy : arguments.dx;
    void* const y = to_image_ ? result : y_copy != nullptr ? y_copy : arguments.y;
    if (x_in_) x_in_->run({.x = arguments.x, .y = x_copy}, workspace, stream);
    if (y_in_) y_in_->run({.x = arguments.dy, .y = y_copy}, workspace, stream);
    if (planes_) planes_->run({.x = x, .y = pooled, .indices = plane_taps}, workspace, stream);
    if (depth_) depth_->run({.x = pooled, .y = y, .indices = depth_taps}, workspace, stream);
    if (to_image_) {
      to_planes_->run({.dy = dy, .saved_indices = depth_taps, .dx = gradient}, workspace, stream);
      to_image_->run({.dy = gradient, .saved_indices = plane_taps, .dx = dx}, workspace, stream);
    }
    if (result_out_)
      result_out_->run({.x = to_image_ ? x_copy : y_copy, .y = to_image_ ? arguments.dx : arguments.y},
                       workspace, stream);
  }

 private:
  Passes passes_;
  std::size_t scratch_;  // bytes of the workspace that the passes use, one after the other
  std::optional<Prepared<Problem>> planes_, depth_, to_planes_, to_image_;
  std::optional<Prepared<ElementwiseProblem>> x_in_, y_in_, result_out_;
};

Offer<Problem> planes_then_depth(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = options.policy.refusal();
  if (!problem.has_depth()) offer.refusal = "for volumes, (N, C, D, H, W); these are images";
  if (offer.refusal.empty() && problem.indices.present())
    offer.refusal = "has no indices of volumes; only the reference has";
  if (!offer.refusal.empty()) return offer;
  Passes const passes = passes_of(problem);
  std::size_t const between = bytes_of(passes);
  PlanOptions const own = options_within(options.max_workspace - std::min(between, options.max_workspace),
                                         options.batch_invariant);
  std::size_t scratch = 0;
  auto const count = [&](auto const& pass) {
    if (!pass) return;
    auto const plan = make_plan(*pass, device, own);
    scratch = std::max(scratch, plan.workspace_bytes);
    offer.text += (offer.text.empty() ? "" : ", then ") + plan.kernel;
    offer.predicted_seconds += plan.chosen().predicted_seconds;
  };
  Copies const copies = copies_of(problem, passes);
  count(copies.x_in), count(copies.y_in);
  count(passes.planes), count(passes.depth), count(passes.to_planes), count(passes.to_image);
  count(copies.result_out);
  offer.workspace_bytes = padded_bytes(scratch) + between;
  return offer;
}

}  // namespace

Candidate<Problem> volume_pooling_candidate() {
  Candidate<Problem> candidate{
      "planes_then_depth", {}, nullptr, [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
        return std::make_unique<VolumePooling>(plan);
      }};
  candidate.offer = &planes_then_depth;
  return candidate;
}

}  // namespace cosmati::plan
