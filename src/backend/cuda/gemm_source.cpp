// Composes the source of a GEMM kernel.
#include "src/backend/cuda/gemm_source.h"

#include <fmt/format.h>

#include "cosmati/epilogue/cuda_text.h"
#include "cosmati/gemm/arguments.h"
#include "cosmati/gemm/tensor_source.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/group.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::cuda {

namespace {

// The kind of product (single, batch by pointers, group) and the text that stands for it in the kernel's
// type.
struct Whose {
  char const* maps;  // the last template parameter of TensorSource and TensorDestination
  char const* header;
  char const* tiled_kernel;
  char const* walk;  // the second template parameter of warp_specialized_kernel
  bool in_group;
};
constexpr Whose of_problem{"", "", "gemm_kernel", "", false};
constexpr Whose by_pointers{", TensorMapArray", "", "gemm_kernel", "", false};
constexpr Whose of_group{", TensorMapOfProblem", "#include \"cosmati/gemm/group.h\"\n", "grouped_gemm_kernel",
                         ", cosmati::WalkOfGroup<cosmati::ComposedTraits>", true};

std::string source_text(char const* element, OperandAccess const& access, bool by_engine, char const* maps) {
  char const* const along = access.along == Along::depth ? "depth" : "outer";
  return by_engine ? fmt::format("TensorSource<{}, Along::{}{}>", element, along, maps)
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

jit::Source composed(plan::CanonicalGemm const& form, GemmRecipe const& recipe,
                     epilogue::Expression const& expression, Gpu const& gpu, Whose const& whose,
                     OperandTexts const& operands) {
  bool const specialized = recipe.policy.main_loop == MainLoop::warp_specialized;
  bool const stores_by_engine = specialized && plan::stores_by_engine(recipe.policy, form);
  std::string text = fmt::format("#include \"cosmati/gemm/{}.h\"\n{}namespace cosmati {{\n",
                                 specialized ? "warp_specialized" : "kernel", whose.header);
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
      !operands.destination.empty() ? operands.destination
      : stores_by_engine
          ? fmt::format("TensorDestination<{}{}{}>", name_of(form.d.type),
                        *along == '\0' && *whose.maps != '\0' ? ", Along::depth" : along, whose.maps)
          : fmt::format("StridedDestination<{}, {}{}>", name_of(form.d.type), recipe.result_width, along);
  text += fmt::format("using ComposedTraits = {}<GemmPolicy{{{}}},\n{}, {}, {},\n{},\n{}>;\n",
                      specialized ? "WarpSpecializedTraits" : "GemmTraits", plan::initialiser(recipe.policy),
                      operands.a, operands.b, name_of(recipe.sum),
                      operands.epilogue.empty() ? epilogue_text(form) : operands.epilogue, destination);
  // The host computes the layout of parameters and shared memory; the compiler verifies their sizes.
  text += fmt::format(
      "static_assert(sizeof(ComposedTraits::Params) == "
      "{});\nstatic_assert(sizeof(ComposedTraits::SharedStorage) == "
      "{});\n}}\n",
      operands.parameter_bytes, plan::shared_storage_bytes(recipe, form));
  jit::Source source;
  source.text = std::move(text);
  source.name_expression =
      specialized ? fmt::format("cosmati::warp_specialized_kernel<cosmati::ComposedTraits{}>", whose.walk)
                  : fmt::format("cosmati::{}<cosmati::ComposedTraits>", whose.tiled_kernel);
  source.architecture = architecture_of(gpu);
  source.label = form.identity ? "" : expression.text();
  return source;
}

jit::Source composed(plan::CanonicalGemm const& form, GemmRecipe const& recipe,
                     epilogue::Expression const& expression, Gpu const& gpu, Whose const& whose) {
  bool const specialized = recipe.policy.main_loop == MainLoop::warp_specialized;
  auto const text = [&](plan::MatrixForm const& operand, OperandAccess const& access) {
    return source_text(name_of(operand.type), access, specialized && !access.by_threads, whose.maps);
  };
  return composed(form, recipe, expression, gpu, whose,
                  {text(form.a, recipe.a), text(form.b, recipe.b),
                   plan::parameter_bytes(recipe, form, expression.scalars().size(), whose.in_group)});
}

}  // namespace

jit::Source gemm_source(plan::CanonicalGemm const& form, GemmRecipe const& recipe,
                        epilogue::Expression const& expression, Gpu const& gpu, char const* header,
                        OperandTexts const& operands) {
  Whose whose = of_problem;
  whose.header = header;
  whose.walk = operands.walk.c_str();
  return composed(form, recipe, expression, gpu, whose, operands);
}

jit::Source gemm_source(Plan<GemmProblem> const& plan) {
  jit::Source source = composed(plan::canonical(plan.problem, plan.recipe.swapped), plan.recipe,
                                plan.problem.epilogue.expression, plan.device.gpu,
                                plan.problem.by_pointers ? by_pointers : of_problem);
  keep_roundings(source, plan.batch_invariant);
  return source;
}

jit::Source gemm_source(Plan<GroupedGemmProblem> const& plan) {
  return composed(plan::group_form(plan.problem).common, plan.recipe,
                  plan.problem.members.front().epilogue.expression, plan.device.gpu, of_group);
}

}  // namespace cosmati::cuda
