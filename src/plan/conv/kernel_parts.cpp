// The text of a convolution's epilogue in a kernel.
#include "src/plan/conv/kernel_parts.h"

#include <fmt/format.h>

#include "cosmati/epilogue/cuda_text.h"

namespace cosmati::plan {
namespace {

std::string format_text(DigitForm const& form) {
  return fmt::format("OperandFormat<{}, {}, {}, {}>", name_of(form.type), form.by_m, form.by_n, form.width);
}
std::string list_text(std::vector<DigitForm> const& forms) {
  std::string text;
  for (DigitForm const& form : forms) text += (text.empty() ? "" : ", ") + format_text(form);
  return "FormatList<" + text + ">";
}

}  // namespace

std::string epilogue_text(ConvolutionForm const& form) {
  if (form.identity) return fmt::format("IdentityEpilogue<{}>", name_of(form.evaluation));
  return fmt::format("ExpressionEpilogue<ComposedFunction, NoSource, {}, {}, DigitGeometry<{}, {}>>",
                     list_text(form.operands), list_text(form.stores), has_one_digit(form.m),
                     has_one_digit(form.n));
}

std::string destination_text(ConvolutionForm const& form, Along along) {
  return fmt::format("ConvDestination<{}, {}, {}, {}, Along::{}>", name_of(form.d.type), form.d.width,
                     has_one_digit(form.m), has_one_digit(form.n), along == Along::k ? "k" : "mn");
}

std::string function_text(ConvolutionProblem const& problem, ConvolutionForm const& form) {
  if (form.identity) return {};
  auto const& expression = problem.epilogue.expression;
  return fmt::format(
      "struct ComposedFunction {{\n"
      "using Real = {};\n"
      "static constexpr int scalars = {};\n"
      "COSMATI_DEVICE static Real apply(Real acc, Real c, Real const* scalar, Real const* operand, Real* "
      "store) {{\n"
      "{}}}\n}};\n",
      name_of(form.evaluation), expression.scalars().size(), epilogue::to_cuda(expression));
}

}  // namespace cosmati::plan
