// Checks the names and shapes of an expression against those of a problem.
#include "cosmati/epilogue/check.h"

#include <algorithm>

#include "src/epilogue/diagnostic.h"
#include "src/epilogue/text.h"
#include "src/ops/names.h"

namespace cosmati::epilogue {
namespace {

std::string text_of(Shape const& shape) {
  std::string text = "(";
  for (int d = 0; d < shape.rank; ++d) text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text + ")";
}

// The required extents of the operand, with "?" for extents that the problem leaves open.
std::string needed_shape(Operand const& operand, Provided const& provided) {
  std::string text = "(";
  for (std::size_t i = 0; i < operand.indices.size(); ++i) {
    auto const extent = provided.extents.find(operand.indices[i]);
    text += (i == 0 ? "" : ", ") + (extent == provided.extents.end() ? "?" : std::to_string(extent->second));
  }
  return text + ")";
}

bool fits(Operand const& operand, Shape const& shape, Provided const& provided) {
  if (shape.rank != static_cast<int>(operand.indices.size())) return false;
  for (int d = 0; d < shape.rank; ++d) {
    auto const extent = provided.extents.find(operand.indices[static_cast<std::size_t>(d)]);
    if (extent != provided.extents.end() && extent->second != shape[d]) return false;
  }
  return true;
}

void check_scalar(Expression const& expression, Scalar const& scalar, Provided const& provided) {
  if (provided.scalars.count(scalar.name) != 0) return;
  if (provided.operands.count(scalar.name) != 0)
    fail(quoted(scalar.name) + " is used as a scalar, but an array was given for it; write " + scalar.name +
             "[...] with its indices",
         expression.text(), scalar.column);
  std::vector<std::string> const names(provided.scalars.begin(), provided.scalars.end());
  fail("no value was given for the scalar " + quoted(scalar.name) + did_you_mean(scalar.name, names),
       expression.text(), scalar.column);
}

void check_operand(Expression const& expression, Operand const& operand, Provided const& provided) {
  auto const given = provided.operands.find(operand.name);
  if (given == provided.operands.end()) {
    if (provided.scalars.count(operand.name) != 0)
      fail(text_of(operand) + " needs an array, but a scalar was given for " + quoted(operand.name),
           expression.text(), operand.column);
    std::vector<std::string> names;
    for (auto const& [name, shape] : provided.operands) names.push_back(name);
    fail("no array was given for the operand " + quoted(operand.name) + did_you_mean(operand.name, names),
         expression.text(), operand.column);
  }
  if (!fits(operand, given->second, provided))
    fail("the operand " + quoted(operand.name) + " has the shape " + text_of(given->second) + ", but " +
             text_of(operand) + " needs " + needed_shape(operand, provided),
         expression.text(), operand.column);
}

}  // namespace

std::vector<std::string> check(Expression const& expression, Provided const& provided) {
  for (Scalar const& scalar : expression.scalars()) check_scalar(expression, scalar, provided);
  for (Operand const& operand : expression.operands()) check_operand(expression, operand, provided);
  if (expression.uses_source() && !provided.source)
    fail("the expression reads c, but no matrix C was given", expression.text(), expression.source_column());
  for (Store const& store : expression.stores())
    if (provided.scalars.count(store.name) + provided.operands.count(store.name) != 0)
      fail(quoted(store.name) + " is an output of the expression and was given as an input too",
           expression.text(), store.column);

  std::vector<std::string> warnings;
  auto const warn = [&warnings](char const* kind, std::string const& name) {
    warnings.push_back(std::string("the ") + kind + " " + quoted(name) +
                       " was given, but the expression does not use it");
  };
  auto const names = [](auto const& list, std::string const& name) {
    return std::any_of(list.begin(), list.end(), [&name](auto const& entry) { return entry.name == name; });
  };
  for (std::string const& name : provided.scalars)
    if (!names(expression.scalars(), name)) warn("scalar", name);
  for (auto const& [name, shape] : provided.operands)
    if (!names(expression.operands(), name)) warn("operand", name);
  return warnings;
}

}  // namespace cosmati::epilogue
