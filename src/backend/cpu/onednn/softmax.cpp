// Softmax and log-softmax, forward and backward.
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = SoftmaxProblem::Arguments;

std::string violates_layouts(SoftmaxProblem const& p, Device const&) {
  bool const forward = p.direction == Direction::forward;
  for (TensorDescription const* t : {&p.x, forward ? &p.y : &p.dy})
    if (!(t->layout == p.y.layout) || !t->layout.is_dense())
      return "y is " + to_string(p.y) + ", another tensor " + to_string(*t) +
             "; all must be dense and of one layout";
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
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its naive loops for this axis and layout");
    recipe.program.add(
        primitive, {{DNNL_ARG_SRC, recipe.argument([](Arguments const& run, int) { return run.x; }, data)},
                    {DNNL_ARG_DST,
                     recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, data)}});
    return recipe;
  }
  dnnl::softmax_v2_backward::primitive_desc const backward({algorithm, data, data, data, p.axis},
                                                           user_scratchpad(), engine(), primitive);
  if (is_slow(backward)) throw Unsupported("oneDNN has only its naive loops for this axis and layout");
  recipe.program.add(
      backward, {{DNNL_ARG_DST, recipe.argument([](Arguments const& run, int) { return run.saved_y; }, data)},
                 {DNNL_ARG_DIFF_DST, recipe.argument([](Arguments const& run, int) { return run.dy; }, data)},
                 {DNNL_ARG_DIFF_SRC,
                  recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, data)}});
  return recipe;
}

}  // namespace

Candidate<SoftmaxProblem> softmax_candidate() {
  return recipe_candidate<SoftmaxProblem, build>("onednn",
                                                 {{violates_f32<SoftmaxProblem>}, {violates_layouts}});
}

}  // namespace cosmati::cpu::onednn
