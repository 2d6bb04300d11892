// The activation functions that oneDNN supports, on dense tensors of equal layout.
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = ActivationProblem::Arguments;

dnnl::algorithm algorithm_of(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::leaky_relu: return dnnl::algorithm::eltwise_relu;
    case ActivationFunction::elu: return dnnl::algorithm::eltwise_elu;
    case ActivationFunction::sigmoid: return dnnl::algorithm::eltwise_logistic;
    case ActivationFunction::tanh: return dnnl::algorithm::eltwise_tanh;
    case ActivationFunction::gelu: return dnnl::algorithm::eltwise_gelu_erf;
    case ActivationFunction::gelu_tanh: return dnnl::algorithm::eltwise_gelu_tanh;
    case ActivationFunction::silu: return dnnl::algorithm::eltwise_swish;
    case ActivationFunction::relu:
    case ActivationFunction::scaled_tanh: break;
  }
  return dnnl::algorithm::undef;
}

std::string violates_activation(ActivationProblem const& p, Device const&) {
  bool const backward = p.direction == Direction::backward;
  bool const drops_nan = (p.function == ActivationFunction::leaky_relu && (backward || p.alpha == 0)) ||
                         (p.function == ActivationFunction::elu && backward);
  if (algorithm_of(p.function) == dnnl::algorithm::undef || drops_nan)
    return std::string("oneDNN has no ") + name_of(p.function) + " that propagates NaN";
  TensorDescription const& other = backward ? p.dx : p.y;
  for (TensorDescription const* t : {&p.y, &other})
    if (!(t->layout == p.x.layout) || !t->layout.is_dense())
      return "x is " + to_string(p.x) + ", another tensor " + to_string(*t) +
             "; all must be dense and of one layout";
  return {};
}

Recipe<ActivationProblem> build(ActivationProblem const& p, Device const&) {
  Recipe<ActivationProblem> recipe;
  Descriptor const flat{{p.x.layout.size()}, Kind::f32, Tag::a};
  auto const algorithm = algorithm_of(p.function);
  float const alpha = p.function == ActivationFunction::silu ? 1.0f : static_cast<float>(p.alpha);
  bool const forward = p.direction == Direction::forward;
  dnnl::eltwise_forward::primitive_desc const primitive(
      {forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training, algorithm, flat,
       alpha},
      user_scratchpad(), engine());
  auto const x = recipe.argument([](Arguments const& run, int) { return run.x; }, flat);
  if (forward) {
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for this function");
    recipe.program.add(
        primitive, {{DNNL_ARG_SRC, x},
                    {DNNL_ARG_DST,
                     recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, flat)}});
    return recipe;
  }
  dnnl::eltwise_backward::primitive_desc const backward({algorithm, flat, flat, alpha}, user_scratchpad(),
                                                        engine(), primitive);
  if (is_slow(backward)) throw Unsupported("oneDNN has only its reference loops for this function");
  recipe.program.add(
      backward, {{DNNL_ARG_SRC, x},
                 {DNNL_ARG_DIFF_DST, recipe.argument([](Arguments const& run, int) { return run.dy; }, flat)},
                 {DNNL_ARG_DIFF_SRC,
                  recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, flat)}});
  return recipe;
}

}  // namespace

Candidate<ActivationProblem> eltwise_candidate() {
  return recipe_candidate<ActivationProblem, build>(
      "onednn", {{violates_f32<ActivationProblem>}, {violates_activation}});
}

}  // namespace cosmati::cpu::onednn
