// Constant folding, sharing of subexpressions, and the canonical order of nodes.
#include "src/epilogue/builder.h"

#include <bit>
#include <cmath>
#include <utility>

#include "src/epilogue/apply.h"

namespace cosmati::epilogue {

int Builder::add_once(Node const& node) {
  Key const key{node.op, node.operand, std::bit_cast<unsigned long long>(node.constant), node.slot};
  auto const [entry, is_new] = index_.try_emplace(key, static_cast<int>(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return entry->second;
}

int Builder::constant(double value) {
  Node node;
  node.constant = value;
  return add_once(node);
}

int Builder::leaf(Op op, int slot) {
  Node node;
  node.op = op;
  node.slot = slot;
  return add_once(node);
}

bool Builder::is_constant(int index, double value) const {
  return node(index).op == Op::constant && node(index).constant == value;
}

int Builder::simplified(Op op, std::array<int, 3> operand) {
  auto const [a, b, c] = operand;
  if (op == Op::negate && node(a).op == Op::negate) return node(a).operand[0];
  if (op == Op::add && is_constant(a, 0)) return b;
  if ((op == Op::add || op == Op::subtract) && is_constant(b, 0)) return a;
  if (op == Op::multiply && is_constant(a, 1)) return b;
  if ((op == Op::multiply || op == Op::divide) && is_constant(b, 1)) return a;
  bool const zero_times_source = op == Op::multiply && ((is_constant(a, 0) && node(b).op == Op::source) ||
                                                        (is_constant(b, 0) && node(a).op == Op::source));
  return zero_times_source ? constant(0) : -1;
}

int Builder::make(Op op, std::array<int, 3> operand) {
  int const count = arity(op);
  bool all_constant = true;
  double value[3] = {};
  for (int i = 0; i < count; ++i) {
    Node const& argument = node(operand[static_cast<std::size_t>(i)]);
    all_constant = all_constant && argument.op == Op::constant;
    value[i] = argument.constant;
  }
  if (all_constant) {
    double const folded = apply(op, value[0], value[1], value[2]);
    if (std::isfinite(folded)) return constant(folded);  // infinity and NaN have no literal
  }
  if (int const simple = simplified(op, operand); simple >= 0) return simple;
  Node result;
  result.op = op;
  result.operand = operand;
  return add_once(result);
}

Expression Builder::finish(Expression::Contents contents) const {
  Expression::Contents finished = contents;
  finished.nodes.clear();
  finished.scalars.clear();
  finished.operands.clear();
  std::vector<int> moved(nodes_.size(), -1);  // maps node indices here to node indices in `finished`
  auto const new_index = [&moved](int index) {
    return index < 0 ? -1 : moved[static_cast<std::size_t>(index)];
  };
  auto const append = [&](int index) {
    Node copy = node(index);
    for (int& operand : copy.operand) operand = new_index(operand);
    auto const slot = static_cast<std::size_t>(copy.slot);
    if (copy.op == Op::scalar) {
      copy.slot = static_cast<int>(finished.scalars.size());
      finished.scalars.push_back(contents.scalars[slot]);
    } else if (copy.op == Op::operand) {
      copy.slot = static_cast<int>(finished.operands.size());
      finished.operands.push_back(contents.operands[slot]);
    }
    moved[static_cast<std::size_t>(index)] = static_cast<int>(finished.nodes.size());
    finished.nodes.push_back(copy);
  };
  // Visits operands first, with an explicit stack: a chain of sums may be a thousand nodes deep.
  auto const visit = [&](int root) {
    std::vector<int> pending{root};
    while (!pending.empty()) {
      int const index = pending.back();
      int missing = -1;  // the first operand that has not been visited
      for (int const operand : node(index).operand) {
        if (operand < 0 || new_index(operand) >= 0) continue;
        missing = operand;
        break;
      }
      if (missing >= 0) {
        pending.push_back(missing);
      } else {
        pending.pop_back();
        if (new_index(index) < 0) append(index);
      }
    }
    return new_index(root);
  };
  for (Store& store : finished.stores) store.node = visit(store.node);
  finished.result = visit(contents.result);
  return Expression(std::make_shared<Expression::Contents const>(std::move(finished)));
}

}  // namespace cosmati::epilogue
