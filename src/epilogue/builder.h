// Builds the nodes of an expression: folds constants, shares repeated values, drops unused ones.
#pragma once
#include <map>
#include <tuple>

#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

class Builder {
 public:
  int constant(double value);  // finite
  int leaf(Op op, int slot = -1);
  int make(Op op, std::array<int, 3> operand);
  std::size_t size() const { return nodes_.size(); }

  // `contents` contains text, scalars, operands, stores (with nodes of this builder) and result; the returned
  // expression has them renumbered, without unused scalars and operands.
  Expression finish(Expression::Contents contents) const;

 private:
  Node const& node(int index) const { return nodes_[static_cast<std::size_t>(index)]; }
  bool is_constant(int index, double value) const;
  int simplified(Op op, std::array<int, 3> operand);  // -1: no simplification is known
  int add_once(Node const& node);

  using Key = std::tuple<Op, std::array<int, 3>, unsigned long long, int>;
  std::vector<Node> nodes_;
  std::map<Key, int> index_;
};

}  // namespace cosmati::epilogue
