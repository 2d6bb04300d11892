// A parsed epilogue expression: a short list of operations on values, in evaluation order. The parser, the
// reference, the vectorized evaluator and the CUDA text generator share this form.
#pragma once
#include "cosmati/core/cxx20.h"

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cosmati::epilogue {

// Comparisons give 1 or 0; select(condition, a, b) gives a where condition != 0.
enum class Op : unsigned char {
  constant,
  accumulator,
  source,
  scalar,
  operand,  // the leaves; `source` is `c`
  negate,
  add,
  subtract,
  multiply,
  divide,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  select,
  min,
  max,
  abs,
  sqrt,
  rsqrt,
  exp,
  log,
  tanh,
  sigmoid,
  relu,
  leaky_relu,
  elu,
  gelu,
  gelu_tanh,
  silu,
  clamp,
  round,
  erf,
  normal_cdf,
  pow,
};

int arity(Op op);  // number of operands; 0 for a leaf
inline bool is_leaf(Op op) { return op <= Op::operand; }

// One value. Its operands are earlier nodes; those past the arity are -1.
struct Node {
  Op op = Op::constant;
  std::array<int, 3> operand{-1, -1, -1};
  double constant = 0;  // for Op::constant; always finite
  int slot = -1;        // for Op::scalar and Op::operand: index in scalars() or operands()
  friend bool operator==(Node const&, Node const&) = default;
};

// `column` is the offset of the first use in text(), for messages; comparisons ignore it.
struct Scalar {
  std::string name;
  std::size_t column = 0;
  friend bool operator==(Scalar const& a, Scalar const& b) { return a.name == b.name; }
};

// `bias[n]` is {"bias", {"n"}}: dimension d of the array is indexed by indices[d] of the problem.
struct Operand {
  std::string name;
  std::vector<std::string> indices;
  std::size_t column = 0;
  friend bool operator==(Operand const& a, Operand const& b) {
    return a.name == b.name && a.indices == b.indices;
  }
};

// `store(name, value)`: an additional output with the indices of the result.
struct Store {
  std::string name;
  int node = 0;
  std::size_t column = 0;
  friend bool operator==(Store const& a, Store const& b) { return a.name == b.name && a.node == b.node; }
};

// Immutable; copies share the contents. Created by parse() or bind_scalars(); Expression{} is `acc`. Constant
// subexpressions are folded in double, common subexpressions are shared, and unused ones are removed. Nodes,
// scalars and operands are numbered in the order in which the stores and then the result first need them, so
// that texts with the same operations on the same names compare equal.
class Expression {
 public:
  struct Contents {
    std::string text;
    std::vector<Node> nodes;
    std::vector<Scalar> scalars;
    std::vector<Operand> operands;
    std::vector<Store> stores;
    int result = 0;
    std::size_t source_column = 0;  // of the first `c`
  };

  Expression();
  explicit Expression(std::shared_ptr<Contents const> contents) : contents_(std::move(contents)) {}

  std::string const& text() const { return contents_->text; }  // as passed to parse()
  std::vector<Node> const& nodes() const { return contents_->nodes; }
  std::vector<Scalar> const& scalars() const { return contents_->scalars; }
  std::vector<Operand> const& operands() const { return contents_->operands; }
  std::vector<Store> const& stores() const { return contents_->stores; }
  int result() const { return contents_->result; }  // the node of the final value
  std::size_t source_column() const { return contents_->source_column; }
  bool uses_accumulator() const { return uses(Op::accumulator); }
  bool uses_source() const { return uses(Op::source); }
  bool uses(Op op) const;

  friend bool operator==(Expression const& a, Expression const& b);

 private:
  std::shared_ptr<Contents const> contents_;
};

// Canonical text: parse(to_string(e)) == e, unless the text exceeds max_text_length.
std::string to_string(Expression const& expression);

// Replaces the scalars named in `values` by constants and folds again: alpha * acc + beta * c with alpha 1
// and beta 0 becomes acc. Unknown names are ignored; non-finite values remain scalars.
Expression bind_scalars(Expression const& expression, std::map<std::string, double> const& values);

}  // namespace cosmati::epilogue
