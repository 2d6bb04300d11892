// Local response normalisation across channels, forward and backward.
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = LrnProblem::Arguments;

std::string violates_lrn(LrnProblem const& p, Device const&) {
  // Version 2.6 has odd windows; it crashes at 1, and from 7 on forgets channels at the end of a block.
  if (p.size != 3 && p.size != 5) return "size is " + std::to_string(p.size) + "; it must be 3 or 5";
  for (TensorDescription const* t : {&p.y, p.direction == Direction::forward ? &p.y : &p.dx})
    if (!(t->layout == p.x.layout))
      return "x is " + to_string(p.x) + ", another tensor " + to_string(*t) +
             "; the layouts must be the same";
  return {};
}

Recipe<LrnProblem> build(LrnProblem const& p, Device const&) {
  Recipe<LrnProblem> recipe;
  Descriptor const data = descriptor(p.x);
  auto const algorithm = dnnl::algorithm::lrn_across_channels;
  auto const alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta),
             k = static_cast<float>(p.k);
  bool const forward = p.direction == Direction::forward;
  dnnl::lrn_forward::primitive_desc const primitive(
      {forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, algorithm, data,
       p.size, alpha, beta, k},
      user_scratchpad(), engine());
  auto& program = recipe.program;
  auto const x = recipe.argument([](Arguments const& run, int) { return run.x; }, data);
  if (forward) {
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its naive loops for this layout");
    program.add(primitive,
                {{DNNL_ARG_SRC, x},
                 {DNNL_ARG_DST,
                  recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, data)}});
    return recipe;
  }
  // The backward pass reads what a forward pass for training leaves; that runs first, its result is not
  // needed.
  dnnl::lrn_backward::primitive_desc const backward({algorithm, data, data, p.size, alpha, beta, k},
                                                    user_scratchpad(), engine(), primitive);
  if (is_slow(primitive) || is_slow(backward))
    throw Unsupported("oneDNN has only its naive loops for this layout");
  Descriptor const left = primitive.workspace_desc();
  std::vector<Program::Binding> bindings{
      {DNNL_ARG_SRC, x},
      {DNNL_ARG_DIFF_DST, recipe.argument([](Arguments const& run, int) { return run.dy; }, data)},
      {DNNL_ARG_DIFF_SRC,
       recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, data)}};
  if (left.get_size() > 0) {
    auto const workspace = program.temporary(left);
    program.add(
        primitive,
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, program.temporary(data)}, {DNNL_ARG_WORKSPACE, workspace}});
    bindings.emplace_back(DNNL_ARG_WORKSPACE, workspace);
  }
  program.add(backward, bindings);
  return recipe;
}

}  // namespace

Candidate<LrnProblem> lrn_candidate() {
  return recipe_candidate<LrnProblem, build>("onednn", {{violates_f32<LrnProblem>}, {violates_lrn}});
}

}  // namespace cosmati::cpu::onednn
