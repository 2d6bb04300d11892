// Softmax and log-softmax, forward and backward.
#include <algorithm>
#include <atomic>
#include <limits>

#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = SoftmaxProblem::Arguments;

std::string violates_layouts(SoftmaxProblem const& p, Device const& device) {
  bool const forward = p.direction == Direction::forward;
  for (TensorDescription const* t : {&p.x, forward ? &p.y : &p.dy})
    if (!(t->layout == p.y.layout) || !t->layout.is_dense())
      return "y is " + to_string(p.y) + ", another tensor " + to_string(*t) +
             "; all must be dense and of one layout";
  if (p.logarithm && !forward)
    return "this is the gradient of log-softmax; oneDNN's exponential of NaN and infinity is finite, and "
           "under cancellation its error was measured at 56 times the bound";
  if (p.logarithm && lacks_avx(device))
    return "this is log-softmax without AVX; oneDNN's logarithm has an error of 5e-6 there";
  if (p.logarithm && p.y.layout.shape[p.axis] == 1)
    return "rows have one element, whose log-softmax is 0; oneDNN's has an error of 1.4e-6 there";
  return {};
}

Recipe<SoftmaxProblem> build(SoftmaxProblem const& p, Device const&) {
  Recipe<SoftmaxProblem> recipe;
  Descriptor const data = descriptor(p.y);
  auto const algorithm = p.logarithm ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
  bool const forward = p.direction == Direction::forward;
  dnnl::softmax_v2_forward::primitive_desc const primitive(
      {forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, algorithm, data,
       data, p.axis},
      user_scratchpad(), engine());
  if (forward) {
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for this axis and layout");
    recipe.program.add(
        primitive, {{DNNL_ARG_SRC, recipe.argument([](Arguments const& run, int) { return run.x; }, data)},
                    {DNNL_ARG_DST,
                     recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, data)}});
    return recipe;
  }
  dnnl::softmax_v2_backward::primitive_desc const backward({algorithm, data, data, data, p.axis},
                                                           user_scratchpad(), engine(), primitive);
  if (is_slow(backward)) throw Unsupported("oneDNN has only its reference loops for this axis and layout");
  recipe.program.add(
      backward, {{DNNL_ARG_DST, recipe.argument([](Arguments const& run, int) { return run.saved_y; }, data)},
                 {DNNL_ARG_DIFF_DST, recipe.argument([](Arguments const& run, int) { return run.dy; }, data)},
                 {DNNL_ARG_DIFF_SRC,
                  recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, data)}});
  return recipe;
}

// True if no element is infinite or NaN.
COSMATI_ALWAYS_INLINE bool all_finite(float const* x, Index count) {
  int others = 0;
  for (Index i = 0; i < count; ++i) others |= x[i] - x[i] == 0 ? 0 : 1;
  return others == 0;
}

// True if holds(elements, count) for the share of every thread.
template <class Holds>
bool all_shares(float const* elements, Index count, int threads, Holds const& holds) {
  std::atomic<bool> result = true;
  parallel_parts(threads, [&](int part, int parts) {
    auto const [first, last] = share(count, part, parts, 16);
    if (!holds(elements + first, last - first)) result.store(false, std::memory_order_relaxed);
  });
  return result;
}

int scanning_threads(Index elements, Device const& device) {
  return elements < (1 << 14) ? 1 : device.threads;
}

// A row that contains NaN or +Inf, or only -Inf, must become all NaN; oneDNN writes [0, NaN, 0] for the row
// [1, NaN, 2]. One pass over x detects whether such a row may exist; only then are the rows examined one by
// one.
class ForwardSoftmax final : public HostKernel<SoftmaxProblem> {
 public:
  ForwardSoftmax(SoftmaxProblem const& problem, Device const& device)
      : softmax_(problem, device),
        recipe_bytes_(build(problem, device).workspace_bytes()),
        elements_(problem.x.layout.size()),
        length_(problem.x.extent(problem.axis)),
        step_(problem.x.layout.stride[problem.axis]),
        threads_(scanning_threads(elements_, device)) {
    Layout rows = problem.x.layout;
    rows.shape[problem.axis] = 1;
    rows_ = make_loop_nest<1>({rows});
  }

  // The workspace has one byte per row after oneDNN's scratchpad.
  static std::size_t marks(SoftmaxProblem const& problem) {
    return static_cast<std::size_t>(problem.x.layout.size() / problem.x.extent(problem.axis));
  }

  void run(Arguments const& arguments, std::byte* workspace) const override {
    auto const* const x = static_cast<float const*>(arguments.x);
    bool const plain = all_shares(x, elements_, threads_, Clones<all_finite>::call);
    std::byte* const undefined = workspace + recipe_bytes_;
    if (!plain)  // before y, which may alias x, is written
      for (Index row = 0; row < rows_.size(); ++row)
        undefined[row] = std::byte{is_undefined(x + rows_.offset(0, row))};
    softmax_.run(arguments, workspace);
    if (plain) return;
    auto* const y = static_cast<float*>(arguments.y);
    for (Index row = 0; row < rows_.size(); ++row)
      if (undefined[row] != std::byte{0})
        for (Index i = 0; i < length_; ++i)
          y[rows_.offset(0, row) + i * step_] = std::numeric_limits<float>::quiet_NaN();
  }

 private:
  bool is_undefined(float const* row) const {
    float largest = -std::numeric_limits<float>::infinity();
    for (Index i = 0; i < length_; ++i) {
      float const value = row[i * step_];
      if (value != value) return true;
      largest = std::max(largest, value);
    }
    return largest - largest != 0;
  }

  RecipeKernel<SoftmaxProblem, build> softmax_;
  std::size_t recipe_bytes_;
  Index elements_, length_, step_;
  int threads_;
  LoopNest<1> rows_;
};

}  // namespace

Candidate<SoftmaxProblem> softmax_candidate() {
  auto candidate =
      recipe_candidate<SoftmaxProblem, build>("onednn", {{violates_f32<SoftmaxProblem>}, {violates_layouts}});
  static auto const recipe_bytes = candidate.workspace_bytes;
  static auto const prepare_recipe = candidate.prepare;
  candidate.workspace_bytes = [](SoftmaxProblem const& problem, Device const& device) {
    std::size_t const bytes = recipe_bytes(problem, device);
    return problem.direction == Direction::forward ? bytes + ForwardSoftmax::marks(problem) : bytes;
  };
  candidate.prepare = [](Plan<SoftmaxProblem> const& plan) -> std::unique_ptr<Kernel<SoftmaxProblem>> {
    if (plan.problem.direction == Direction::forward)
      return std::make_unique<ForwardSoftmax>(plan.problem, plan.device);
    return prepare_recipe(plan);
  };
  return candidate;
}

}  // namespace cosmati::cpu::onednn
