// The composed text of a GEMM kernel.
#include "src/backend/cuda/gemm_source.h"

#include <fmt/format.h>

#include "cosmati/epilogue/cuda_text.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/gemm/tensor_source.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::cuda {
namespace {

std::string source_text(char const* element, OperandAccess const& access, bool by_engine) {
  char const* const along = access.along == Along::depth ? "depth" : "outer";
  return by_engine ? fmt::format("TensorSource<{}, Along::{}>", element, along)
                   : fmt::format("StridedSource<{}, Along::{}, {}>", element, along, access.width);
}

std::string format_text(plan::MatrixForm const& form) {
  return fmt::format("OperandFormat<{}, {}, {}, {}>", name_of(form.type), form.by_m, form.by_n, form.width);
}

std::string list_text(std::vector<plan::MatrixForm> const& forms) {
  std::string text;
  for (plan::MatrixForm const& form : forms) text += (text.empty() ? "" : ", ") + format_text(form);
  return "FormatList<" + text + ">";
}

std::string epilogue_text(plan::CanonicalGemm const& form) {
  if (form.identity) return fmt::format("IdentityEpilogue<{}>", name_of(form.evaluation));
  return fmt::format("ExpressionEpilogue<ComposedFunction, {}, {}, {}>",
                     form.c.present ? format_text(form.c) : "NoSource", list_text(form.operands),
                     list_text(form.stores));
}

}  // namespace

std::string architecture_of(Gpu const& gpu) {
  return fmt::format("sm_{}{}{}", gpu.major, gpu.minor, gpu.major >= 9 ? "a" : "");
}

jit::Source gemm_source(Plan<GemmProblem> const& plan) {
  plan::CanonicalGemm const form = plan::canonical(plan.problem, plan.recipe.swapped);
  GemmRecipe const& recipe = plan.recipe;
  auto const& expression = plan.problem.epilogue.expression;
  bool const specialized = recipe.policy.main_loop == MainLoop::warp_specialized;
  bool const stores_by_engine = specialized && plan::stores_by_engine(recipe.policy, form);
  std::string text = fmt::format("#include \"cosmati/gemm/{}.h\"\nnamespace cosmati {{\n",
                                 specialized ? "warp_specialized" : "kernel");
  if (!form.identity)
    text += fmt::format(
        "struct ComposedFunction {{\n"
        "using Real = {};\n"
        "static constexpr int scalars = {};\n"
        "COSMATI_DEVICE static Real apply(Real acc, Real c, Real const* scalar, Real const* operand, Real* "
        "store) {{\n"
        "{}}}\n}};\n",
        name_of(form.evaluation), expression.scalars().size(), epilogue::to_cuda(expression));
  char const* const along =
      specialized && plan::direction_of_result(form) == Along::outer ? ", Along::outer" : "";
  std::string const destination =
      stores_by_engine
          ? fmt::format("TensorDestination<{}{}>", name_of(form.d.type), along)
          : fmt::format("StridedDestination<{}, {}{}>", name_of(form.d.type), recipe.result_width, along);
  text += fmt::format("using ComposedTraits = {}<GemmPolicy{{{}}},\n{}, {}, {},\n{},\n{}>;\n",
                      specialized ? "WarpSpecializedTraits" : "GemmTraits", plan::initialiser(recipe.policy),
                      source_text(name_of(form.a.type), recipe.a, specialized && !recipe.a.by_threads),
                      source_text(name_of(form.b.type), recipe.b, specialized && !recipe.b.by_threads),
                      name_of(recipe.sum), epilogue_text(form), destination);
  std::size_t const parameter_bytes =
      plan::with_epilogue_arguments(form, expression.scalars().size(), [&]<class Epilogue>(Epilogue const&) {
        if (!specialized) return sizeof(MatrixGemmParameters<Epilogue>);
        using Tensor = TensorArguments;
        auto const bytes = [&]<class A, class B>(A const&, B const&) {
          return stores_by_engine ? sizeof(GemmParameters<A, B, Epilogue, Tensor>)
                                  : sizeof(GemmParameters<A, B, Epilogue, MatrixArguments>);
        };
        if (recipe.a.by_threads)
          return recipe.b.by_threads ? bytes(MatrixArguments{}, MatrixArguments{})
                                     : bytes(MatrixArguments{}, Tensor{});
        return recipe.b.by_threads ? bytes(Tensor{}, MatrixArguments{}) : bytes(Tensor{}, Tensor{});
      });
  // The host lays out parameters and shared memory for a kernel that it has not compiled.
  text += fmt::format(
      "static_assert(sizeof(ComposedTraits::Params) == "
      "{});\nstatic_assert(sizeof(ComposedTraits::SharedStorage) == "
      "{});\n}}\n",
      parameter_bytes, plan::shared_storage_bytes(recipe, form));
  jit::Source source;
  source.text = std::move(text);
  source.name_expression =
      fmt::format("cosmati::{}_kernel<cosmati::ComposedTraits>", specialized ? "warp_specialized" : "gemm");
  source.architecture = architecture_of(plan.device.gpu);
  source.label = form.identity ? "" : expression.text();
  return source;
}

}  // namespace cosmati::cuda
