// The reference evaluator: an expression on one element, in double precision.
#include "cosmati/epilogue/evaluate.h"

#include <array>
#include <cmath>
#include <numbers>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/error.h"
#include "src/epilogue/apply.h"

namespace cosmati::epilogue {
namespace {

double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double round_to_even(double x) {
  if (!(std::fabs(x) < 4503599627370496.0)) return x;  // from 2^52 on, every double is an integer
  double const below = std::floor(x);
  double const rest = x - below;
  bool const up = rest > 0.5 || (rest == 0.5 && std::fmod(below, 2.0) != 0);
  return std::copysign(up ? below + 1 : below, x);
}

double gelu_tanh(double x) {
  double const twice = 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-twice));  // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), without cancellation
}

void require(std::size_t given, std::size_t needed, char const* what) {
  if (given < needed)
    throw Error(ErrorCode::bad_request, "an epilogue with " + std::to_string(needed) + " " + what +
                                            " was given " + std::to_string(given) + " values for them");
}

}  // namespace

double apply(Op op, double a, double b, double c) {
  switch (op) {
    case Op::constant:
    case Op::accumulator:
    case Op::source:
    case Op::scalar:
    case Op::operand: break;
    case Op::negate: return -a;
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return a / b;
    case Op::less: return a < b ? 1 : 0;
    case Op::less_equal: return a <= b ? 1 : 0;
    case Op::greater: return a > b ? 1 : 0;
    case Op::greater_equal: return a >= b ? 1 : 0;
    case Op::equal: return a == b ? 1 : 0;
    case Op::not_equal: return a != b ? 1 : 0;
    case Op::select: return a != 0 ? b : c;
    case Op::min: return minimum(a, b);
    case Op::max: return maximum(a, b);
    case Op::abs: return std::fabs(a);
    case Op::sqrt: return std::sqrt(a);
    case Op::rsqrt: return 1 / std::sqrt(a);
    case Op::exp: return std::exp(a);
    case Op::log: return std::log(a);
    case Op::tanh: return std::tanh(a);
    case Op::sigmoid: return 1 / (1 + std::exp(-a));
    case Op::relu: return a < 0 ? 0 : a;
    case Op::leaky_relu: return a < 0 ? b * a : a;
    case Op::elu: return a > 0 ? a : b * std::expm1(a);
    case Op::gelu: return 0.5 * a * std::erfc(-a / std::numbers::sqrt2);
    case Op::gelu_tanh: return gelu_tanh(a);
    case Op::silu: return a / (1 + std::exp(-a));
    case Op::clamp: return minimum(maximum(a, b), c);
    case Op::round: return round_to_even(a);
    case Op::erf: return std::erf(a);
    case Op::normal_cdf: return 0.5 * std::erfc(-a / std::numbers::sqrt2);
    case Op::pow: return std::pow(a, b);
  }
  return 0;
}

double evaluate(Expression const& expression, Inputs const& inputs) {
  require(inputs.scalars.size(), expression.scalars().size(), "scalars");
  require(inputs.operands.size(), expression.operands().size(), "operands");
  require(inputs.stores.size(), expression.stores().size(), "stores");
  std::array<double, max_nodes> value;
  auto const at = [&value](int node) { return node < 0 ? 0 : value[static_cast<std::size_t>(node)]; };
  std::vector<Node> const& nodes = expression.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node const& node = nodes[i];
    auto const slot = static_cast<std::size_t>(node.slot);
    switch (node.op) {
      case Op::constant: value[i] = node.constant; break;
      case Op::accumulator: value[i] = inputs.accumulator; break;
      case Op::source: value[i] = inputs.source; break;
      case Op::scalar: value[i] = inputs.scalars[slot]; break;
      case Op::operand: value[i] = inputs.operands[slot]; break;
      default:
        if (int const scalar = scalar_of_scaled_input(expression, node); scalar >= 0 && at(scalar) == 0)
          value[i] = 0;
        else
          value[i] = apply(node.op, at(node.operand[0]), at(node.operand[1]), at(node.operand[2]));
    }
  }
  for (std::size_t i = 0; i < expression.stores().size(); ++i)
    inputs.stores[i] = at(expression.stores()[i].node);
  return at(expression.result());
}

}  // namespace cosmati::epilogue
