// Converts an expression to post-operations by walking from the result down to the accumulator.
#include "src/backend/cpu/onednn/post_ops.h"

#include <algorithm>
#include <utility>

namespace cosmati::cpu::onednn {
namespace {

using dnnl::algorithm;
using epilogue::Node;
using epilogue::Op;

// One operation of the chain.
struct Link {
  algorithm operation = algorithm::undef;
  float alpha = 0;
  float beta = 0;
  int operand = -1;  // for binary operations
};

class Chain {
 public:
  explicit Chain(epilogue::Expression const& expression) : nodes_(expression.nodes()) {}

  // Appends the links from acc to the node `result`, in order of application. Returns false if the expression
  // is not a chain; then `links` is unspecified.
  bool follow(int result, std::vector<Link>& links) const {
    int at = result;
    while (node(at).op != Op::accumulator) {
      Link link;
      int const next = step(node(at), link);
      if (next < 0) return false;
      links.push_back(link);
      at = next;
    }
    std::reverse(links.begin(), links.end());
    return true;
  }

 private:
  Node const& node(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  bool is_constant(int i) const { return node(i).op == Op::constant; }
  float value(int i) const { return static_cast<float>(node(i).constant); }

  // Describes the operation of `n` and returns the node that it is applied to, or -1. relu is not supported:
  // oneDNN's maps NaN to 0.
  int step(Node const& n, Link& link) const {
    int const a = n.operand[0], b = n.operand[1];
    auto const unary = [&](algorithm operation, float alpha = 0, float beta = 0) {
      link = {operation, alpha, beta, -1};
      return a;
    };
    switch (n.op) {
      case Op::negate: return unary(algorithm::eltwise_linear, -1);
      case Op::add:
      case Op::multiply: return commutative(n.op == Op::add, a, b, link);
      case Op::subtract: return is_constant(b) ? unary(algorithm::eltwise_linear, 1, -value(b)) : -1;
      case Op::abs: return unary(algorithm::eltwise_abs);
      case Op::tanh: return unary(algorithm::eltwise_tanh);
      case Op::sigmoid: return unary(algorithm::eltwise_logistic);
      case Op::leaky_relu:
        return is_constant(b) && value(b) != 0 ? unary(algorithm::eltwise_relu, value(b)) : -1;
      case Op::elu: return is_constant(b) ? unary(algorithm::eltwise_elu, value(b)) : -1;
      case Op::gelu: return unary(algorithm::eltwise_gelu_erf);
      case Op::gelu_tanh: return unary(algorithm::eltwise_gelu_tanh);
      case Op::silu: return unary(algorithm::eltwise_swish, 1);
      default: return -1;
    }
  }

  int commutative(bool add, int a, int b, Link& link) const {
    if (is_constant(a) || node(a).op == Op::operand) std::swap(a, b);
    if (is_constant(b)) {
      link = {algorithm::eltwise_linear, add ? 1 : value(b), add ? value(b) : 0, -1};
      return a;
    }
    if (node(b).op != Op::operand) return -1;
    link = {add ? algorithm::binary_add : algorithm::binary_mul, 0, 0, node(b).slot};
    return a;
  }

  std::vector<Node> const& nodes_;
};

}  // namespace

std::optional<PostOps> match_post_ops(Epilogue const& epilogue, char const* channel, Index extent, int rank,
                                      int channel_dimension) {
  auto const& expression = epilogue.expression;
  if (!expression.stores().empty()) return {};
  std::vector<Link> links;
  if (!Chain(expression).follow(expression.result(), links)) return {};
  PostOps result;
  // oneDNN 2.6 applies the constants of the first operation to later ones of the same kind.
  for (auto link = links.begin(); link != links.end(); ++link)
    for (auto earlier = links.begin(); earlier != link; ++earlier)
      if (link->operand < 0 && link->operation == earlier->operation) return {};
  for (Link const& link : links) {
    if (link.operand < 0) {
      result.operations.append_eltwise(1, link.operation, link.alpha, link.beta);
      continue;
    }
    auto const& description = epilogue.operands[static_cast<std::size_t>(link.operand)];
    auto const& letters = expression.operands()[static_cast<std::size_t>(link.operand)].indices;
    bool const along_channels = letters.size() == 1 && letters[0] == channel;
    if (!along_channels || description.type != DataType::f32 ||
        (extent > 1 && description.layout.stride[0] != 1))
      return {};
    if (&link == &links.front() && link.operation == algorithm::binary_add) {
      result.bias = link.operand;
      continue;
    }
    dnnl::memory::dims extents(static_cast<std::size_t>(rank), 1);
    dnnl::memory::dims strides(static_cast<std::size_t>(rank), extent);
    for (int d = channel_dimension; d < rank; ++d) strides[static_cast<std::size_t>(d)] = 1;
    extents[static_cast<std::size_t>(channel_dimension)] = extent;
    result.positions.push_back(result.operations.len());
    result.operands.push_back(link.operand);
    result.memories.push_back({extents, dnnl::memory::data_type::f32, strides});
    result.operations.append_binary(link.operation, result.memories.back());
  }
  return result;
}

}  // namespace cosmati::cpu::onednn
