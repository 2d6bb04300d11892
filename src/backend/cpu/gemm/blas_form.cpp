// Recognizes matrix products that a single BLAS call computes.
#include "src/backend/cpu/gemm/blas_form.h"

#include <algorithm>

namespace cosmati::cpu {
namespace {

using epilogue::Node;
using epilogue::Op;

// Matches `leaf`, `factor * leaf` or `leaf * factor`.
bool read_term(std::vector<Node> const& nodes, int i, Op leaf, Factor& factor) {
  auto const node = [&](int at) -> Node const& { return nodes[static_cast<std::size_t>(at)]; };
  if (node(i).op == leaf) {
    factor = {};
    return true;
  }
  if (node(i).op != Op::multiply) return false;
  int a = node(i).operand[0], b = node(i).operand[1];
  if (node(a).op == leaf) std::swap(a, b);
  if (node(b).op != leaf) return false;
  if (node(a).op == Op::constant)
    factor = {node(a).constant, -1};
  else if (node(a).op == Op::scalar)
    factor = {1, node(a).slot};
  else
    return false;
  return true;
}

}  // namespace

bool read_blas_form(epilogue::Expression const& expression, BlasForm& form) {
  auto const& nodes = expression.nodes();
  if (!expression.stores().empty()) return false;
  if (read_term(nodes, expression.result(), Op::accumulator, form.alpha)) return true;
  Node const& sum = nodes[static_cast<std::size_t>(expression.result())];
  if (sum.op != Op::add) return false;
  for (int first : {0, 1})
    if (read_term(nodes, sum.operand[static_cast<std::size_t>(first)], Op::accumulator, form.alpha) &&
        read_term(nodes, sum.operand[static_cast<std::size_t>(1 - first)], Op::source, form.beta))
      return true;
  return false;
}

std::string violates_blas_form(GemmProblem const& problem, Device const&) {
  BlasForm form;
  if (read_blas_form(problem.epilogue.expression, form)) return {};
  return "the epilogue is " + problem.epilogue.expression.text() + "; it must be alpha*acc + beta*c";
}

bool read_blas_operand(TensorDescription const& t, BlasOperand& operand) {
  Layout const& l = t.layout;
  auto const rows = [&](int row, int column) {
    if (l.stride[column] != 1 && l.extent(column) != 1) return false;
    operand.leading = l.extent(row) == 1 ? std::max<Index>(l.extent(column), 1) : l.stride[row];
    return operand.leading >= l.extent(column);
  };
  operand.letter = 'N';
  if (rows(1, 2)) return true;
  operand.letter = 'T';
  return rows(2, 1);
}

std::string violates_blas_strides(GemmProblem const& problem, Device const&) {
  BlasOperand operand;
  auto const message = [](char const* name, TensorDescription const& t) {
    return std::string(name) + " is " + to_string(t) + "; rows or columns must be contiguous and not overlap";
  };
  if (!read_blas_operand(problem.a, operand)) return message("a", problem.a);
  if (!read_blas_operand(problem.b, operand)) return message("b", problem.b);
  if (!read_blas_operand(problem.d, operand)) return message("d", problem.d);
  return {};
}

}  // namespace cosmati::cpu
