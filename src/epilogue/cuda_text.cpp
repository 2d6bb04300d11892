// Generates one CUDA statement per operation; leaves and constants are written where they are used.
#include "cosmati/epilogue/cuda_text.h"

#include "src/epilogue/apply.h"
#include "src/epilogue/text.h"

namespace cosmati::epilogue {
namespace {

std::string literal(double value) {
  std::string text = number_text(value);
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";  // a long integer literal might not fit in any type
  return "Real(" + text + ")";
}

// The expression for `op` applied to a, b, c. Sigmoid and related functions are written so that they neither
// overflow nor cancel.
std::string value_text(Op op, std::string const& a, std::string const& b, std::string const& c, bool coarse) {
  std::string const exp = coarse ? "exponential(" : "exp(";
  auto const call = [&a](char const* function) { return std::string(function) + "(" + a + ")"; };
  auto const smaller = [](std::string const& x, std::string const& y) {
    return "(" + x + " != " + x + " || " + x + " < " + y + " ? " + x + " : " + y + ")";
  };
  auto const larger = [](std::string const& x, std::string const& y) {
    return "(" + x + " != " + x + " || " + x + " > " + y + " ? " + x + " : " + y + ")";
  };
  auto const quotient = [coarse](std::string const& x, std::string const& y) {
    return coarse ? "coarse_quotient(" + x + ", " + y + ")" : x + " / " + y;
  };
  char const* const root = coarse ? "coarse_root" : "sqrt";
  switch (op) {
    case Op::constant:
    case Op::accumulator:
    case Op::source:
    case Op::scalar:
    case Op::operand: break;
    case Op::negate: return "-" + a;
    case Op::add:
    case Op::subtract:
    case Op::multiply: return a + " " + std::string(operator_text(op)) + " " + b;
    case Op::divide: return quotient(a, b);
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
    case Op::equal:
    case Op::not_equal: return a + " " + std::string(operator_text(op)) + " " + b + " ? Real(1) : Real(0)";
    case Op::select: return a + " != Real(0) ? " + b + " : " + c;
    case Op::min: return smaller(a, b);
    case Op::max: return larger(a, b);
    case Op::abs: return call("fabs");
    case Op::sqrt: return call(root);
    case Op::rsqrt: return quotient("Real(1)", call(root));
    case Op::exp: return exp + a + ")";
    case Op::log: return call("log");
    case Op::tanh: return call("tanh");
    case Op::sigmoid: return quotient("Real(1)", "(Real(1) + " + exp + "-" + a + "))");
    case Op::relu: return a + " < Real(0) ? Real(0) : " + a;
    case Op::leaky_relu: return a + " < Real(0) ? " + b + " * " + a + " : " + a;
    case Op::elu: return a + " > Real(0) ? " + a + " : " + b + " * " + call("expm1");
    case Op::gelu:
      return coarse ? call("coarse_gelu")
                    : "Real(0.5) * " + a + " * erfc(" + a + " * Real(-0.70710678118654752))";
    case Op::gelu_tanh:
      return quotient(a, "(Real(1) + " + exp + "Real(-1.5957691216057308) * (" + a + " + Real(0.044715) * " +
                             a + " * " + a + " * " + a + ")))");
    case Op::silu: return quotient(a, "(Real(1) + " + exp + "-" + a + "))");
    case Op::clamp: break;  // written as two statements by the caller
    case Op::round: return call("rint");
    case Op::erf: return call("erf");
    case Op::normal_cdf:
      return coarse ? call("coarse_normal_cdf") : "Real(0.5) * erfc(" + a + " * Real(-0.70710678118654752))";
    case Op::pow: return "pow(" + a + ", " + b + ")";
  }
  return a;
}

}  // namespace

std::string to_cuda(Expression const& expression, bool coarse) {
  std::vector<std::string> names;
  std::string text;
  auto const name_of = [&names](int node) { return node < 0 ? "" : names[static_cast<std::size_t>(node)]; };
  auto const define = [&text](std::string const& name, std::string const& value) {
    text += "Real const " + name + " = " + value + ";\n";
  };
  for (Node const& node : expression.nodes()) {
    std::string const name = "v" + std::to_string(names.size());
    std::string const slot = "[" + std::to_string(node.slot) + "]";
    std::string const a = name_of(node.operand[0]), b = name_of(node.operand[1]),
                      c = name_of(node.operand[2]);
    switch (node.op) {
      case Op::constant: names.push_back(literal(node.constant)); continue;
      case Op::accumulator: names.push_back("acc"); continue;
      case Op::source: names.push_back("c"); continue;
      case Op::scalar: names.push_back("scalar" + slot); continue;
      case Op::operand: names.push_back("operand" + slot); continue;
      case Op::clamp:
        define(name + "_low", value_text(Op::max, a, b, "", coarse));
        define(name, value_text(Op::min, name + "_low", c, "", coarse));
        break;
      default:
        if (int const scalar = scalar_of_scaled_input(expression, node); scalar >= 0)
          define(name, name_of(scalar) + " == Real(0) ? Real(0) : " + a + " * " + b);
        else
          define(name, value_text(node.op, a, b, c, coarse));
    }
    names.push_back(name);
  }
  for (std::size_t i = 0; i < expression.stores().size(); ++i)
    text += "store[" + std::to_string(i) + "] = " + name_of(expression.stores()[i].node) + ";\n";
  return text + "return " + name_of(expression.result()) + ";\n";
}

}  // namespace cosmati::epilogue
