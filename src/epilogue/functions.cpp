// The table of functions of the expression language.
#include "cosmati/epilogue/functions.h"

#include <algorithm>

namespace cosmati::epilogue {
namespace {

constexpr Function table[] = {
    {Op::abs, "abs", "x", "|x|"},
    {Op::clamp, "clamp", "x, low, high", "min(max(x, low), high); NaN stays NaN"},
    {Op::elu, "elu", "x, alpha", "x where x > 0, alpha * (exp(x) - 1) elsewhere"},
    {Op::erf, "erf", "x", "the error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x"},
    {Op::exp, "exp", "x", "e to the power of x"},
    {Op::gelu, "gelu", "x", "x / 2 * (1 + erf(x / sqrt(2)))"},
    {Op::gelu_tanh, "gelu_tanh", "x", "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))"},
    {Op::leaky_relu, "leaky_relu", "x, slope", "slope * x where x < 0, x elsewhere"},
    {Op::log, "log", "x", "the natural logarithm; -infinity at 0, NaN below"},
    {Op::max, "max", "a, b", "the larger one; NaN if either is NaN"},
    {Op::min, "min", "a, b", "the smaller one; NaN if either is NaN"},
    {Op::normal_cdf, "normal_cdf", "x",
     "(1 + erf(x / sqrt(2))) / 2, the standard normal distribution function"},
    {Op::pow, "pow", "x, y", "x to the power of y; for negative x, y must be an integer"},
    {Op::relu, "relu", "x", "0 where x < 0, x elsewhere; NaN stays NaN"},
    {Op::round, "round", "x", "the nearest integer, ties to even"},
    {Op::rsqrt, "rsqrt", "x", "1 / sqrt(x)"},
    {Op::select, "select", "condition, a, b", "a where condition != 0, b elsewhere"},
    {Op::sigmoid, "sigmoid", "x", "1 / (1 + exp(-x))"},
    {Op::silu, "silu", "x", "x * sigmoid(x)"},
    {Op::sqrt, "sqrt", "x", "the square root; NaN below 0"},
    {Op::tanh, "tanh", "x", "the hyperbolic tangent"},
};

}  // namespace

std::span<Function const> function_table() { return table; }

Function const* find_function(std::string_view name) {
  auto const found = std::find_if(std::begin(table), std::end(table),
                                  [name](Function const& function) { return function.name == name; });
  return found == std::end(table) ? nullptr : found;
}

int arity(Op op) {
  if (is_leaf(op)) return 0;
  if (op == Op::negate) return 1;
  if (op <= Op::not_equal) return 2;
  for (Function const& function : table)
    if (function.op == op)
      return 1 + static_cast<int>(std::count(function.parameters.begin(), function.parameters.end(), ','));
  return 0;
}

}  // namespace cosmati::epilogue
