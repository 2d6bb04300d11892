// Expression: equality, queries, and substitution of scalars by constants.
#include "cosmati/epilogue/expression.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "src/epilogue/builder.h"

namespace cosmati::epilogue {
namespace {

Expression make_accumulator() {
  Builder builder;
  Expression::Contents contents;
  contents.text = "acc";
  contents.result = builder.leaf(Op::accumulator);
  return builder.finish(std::move(contents));
}

}  // namespace

Expression::Expression() {
  static Expression const accumulator = make_accumulator();
  contents_ = accumulator.contents_;
}

bool Expression::uses(Op op) const {
  return std::any_of(nodes().begin(), nodes().end(), [op](Node const& node) { return node.op == op; });
}

bool operator==(Expression const& a, Expression const& b) {
  if (a.contents_ == b.contents_) return true;
  auto const same = [](Node const& x, Node const& y) {  // distinguishes 0 from -0
    return x == y && std::signbit(x.constant) == std::signbit(y.constant);
  };
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(), same) &&
         a.scalars() == b.scalars() && a.operands() == b.operands() && a.stores() == b.stores() &&
         a.result() == b.result();
}

Expression bind_scalars(Expression const& expression, std::map<std::string, double> const& values) {
  Builder builder;
  std::vector<int> built;  // maps the expression's nodes to the builder's
  auto const built_of = [&built](int node) { return node < 0 ? -1 : built[static_cast<std::size_t>(node)]; };
  for (Node const& node : expression.nodes()) {
    if (node.op == Op::constant) {
      built.push_back(builder.constant(node.constant));
    } else if (node.op == Op::scalar) {
      auto const value = values.find(expression.scalars()[static_cast<std::size_t>(node.slot)].name);
      bool const is_bound = value != values.end() && std::isfinite(value->second);
      built.push_back(is_bound ? builder.constant(value->second) : builder.leaf(node.op, node.slot));
    } else if (is_leaf(node.op)) {
      built.push_back(builder.leaf(node.op, node.slot));
    } else {
      auto const [a, b, c] = node.operand;
      built.push_back(builder.make(node.op, {built_of(a), built_of(b), built_of(c)}));
    }
  }
  Expression::Contents contents{expression.text(),         {},
                                expression.scalars(),      expression.operands(),
                                expression.stores(),       built_of(expression.result()),
                                expression.source_column()};
  for (Store& store : contents.stores) store.node = built_of(store.node);
  return builder.finish(std::move(contents));
}

}  // namespace cosmati::epilogue
