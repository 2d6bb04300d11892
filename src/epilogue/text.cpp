// Prints the canonical text of an expression, with as few parentheses as the grammar allows and a `let` for
// each shared value.
#include "src/epilogue/text.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "cosmati/epilogue/functions.h"

namespace cosmati::epilogue {
namespace {

// The precedence of the outermost operation of a text.
enum Binding { comparison = 1, sum, product, unary, primary };

constexpr int deepest_nesting = 32;  // deeper values get a `let`, so that the text stays within max_nesting

Binding binding_of(Op op) {
  switch (op) {
    case Op::add:
    case Op::subtract: return sum;
    case Op::multiply:
    case Op::divide: return product;
    case Op::negate: return unary;
    default: return operator_text(op).empty() ? primary : comparison;
  }
}

struct Fragment {
  std::string text;
  Binding binding = primary;
  int nesting = 0;
};

class Printer {
 public:
  explicit Printer(Expression const& expression) : expression_(expression) {
    std::size_t const count = expression.nodes().size();
    fragments_.resize(count);
    uses_.resize(count);
    for (Node const& node : expression.nodes())
      for (int const operand : node.operand)
        if (operand >= 0) ++uses_[static_cast<std::size_t>(operand)];
    for (Store const& store : expression.stores()) ++uses_[static_cast<std::size_t>(store.node)];
    ++uses_[static_cast<std::size_t>(expression.result())];
    for (Scalar const& scalar : expression.scalars()) names_.insert(scalar.name);
    for (Operand const& operand : expression.operands()) names_.insert(operand.name);
  }

  std::string print() {
    for (std::size_t i = 0; i < fragments_.size(); ++i) {
      Node const& node = expression_.nodes()[i];
      Fragment fragment = fragment_of(node);
      bool const is_shared = uses_[i] > 1 && !is_leaf(node.op);
      if (is_shared || fragment.nesting > deepest_nesting) {
        std::string const name = new_name();
        statements_ += "let " + name + " = " + fragment.text + "; ";
        fragment = {name};
      }
      fragments_[i] = std::move(fragment);
    }
    for (Store const& store : expression_.stores())
      statements_ += "store(" + store.name + ", " + at(store.node).text + "); ";
    return statements_ + at(expression_.result()).text;
  }

 private:
  Fragment const& at(int node) const { return fragments_[static_cast<std::size_t>(node)]; }

  std::string new_name() {
    while (names_.count("t" + std::to_string(next_name_)) != 0) ++next_name_;
    return "t" + std::to_string(next_name_++);
  }

  // The operand's text, in parentheses if its precedence is below `required`.
  std::string operand_text(int node, Binding required, int& nesting) const {
    Fragment const& fragment = at(node);
    bool const bare = fragment.binding >= required;
    nesting = std::max(nesting, fragment.nesting + (bare ? 0 : 1));
    return bare ? fragment.text : "(" + fragment.text + ")";
  }

  Fragment fragment_of(Node const& node) const {
    auto const slot = static_cast<std::size_t>(node.slot);
    switch (node.op) {
      case Op::constant: {
        std::string text = number_text(node.constant);
        Binding const binding = text[0] == '-' ? unary : primary;
        return {std::move(text), binding, binding == unary ? 1 : 0};
      }
      case Op::accumulator: return {"acc"};
      case Op::source: return {"c"};
      case Op::scalar: return {expression_.scalars()[slot].name};
      case Op::operand: return {text_of(expression_.operands()[slot])};
      default: break;
    }
    Fragment result;
    result.binding = binding_of(node.op);
    auto const [a, b, c] = node.operand;
    if (node.op == Op::negate) {
      result.text = "-" + operand_text(a, unary, result.nesting);
      ++result.nesting;
    } else if (result.binding != primary) {  // left-associative; comparisons cannot be chained
      auto const tighter = static_cast<Binding>(result.binding + 1);
      std::string const left =
          operand_text(a, result.binding == comparison ? tighter : result.binding, result.nesting);
      std::string const right = operand_text(b, tighter, result.nesting);
      result.text = left + " " + std::string(operator_text(node.op)) + " " + right;
    } else {
      for (Function const& function : function_table())
        if (function.op == node.op) result.text = std::string(function.name) + "(";
      for (int i = 0; i < arity(node.op); ++i)
        result.text += (i == 0 ? "" : ", ") +
                       operand_text(node.operand[static_cast<std::size_t>(i)], comparison, result.nesting);
      result.text += ")";
      ++result.nesting;
    }
    return result;
  }

  Expression const& expression_;
  std::vector<Fragment> fragments_;
  std::vector<int> uses_;
  std::set<std::string> names_;
  int next_name_ = 0;
  std::string statements_;
};

}  // namespace

std::string number_text(double value) {
  char buffer[32];
  auto const [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return error == std::errc() ? std::string(buffer, end) : "0";
}

std::string_view operator_text(Op op) {
  switch (op) {
    case Op::add: return "+";
    case Op::subtract: return "-";
    case Op::multiply: return "*";
    case Op::divide: return "/";
    case Op::less: return "<";
    case Op::less_equal: return "<=";
    case Op::greater: return ">";
    case Op::greater_equal: return ">=";
    case Op::equal: return "==";
    case Op::not_equal: return "!=";
    default: return "";
  }
}

std::string text_of(std::vector<std::string> const& indices) {
  std::string text = "[";
  for (std::size_t i = 0; i < indices.size(); ++i) text += (i == 0 ? "" : ", ") + indices[i];
  return text + "]";
}

std::string text_of(Operand const& operand) { return operand.name + text_of(operand.indices); }

std::string to_string(Expression const& expression) { return Printer(expression).print(); }

}  // namespace cosmati::epilogue
