// Checks the operands and scalars of an expression against those that a problem provides.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cosmati/core/shape.h"
#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

struct Provided {
  std::set<std::string> scalars;
  std::map<std::string, Shape> operands;
  // The extent of each index: {{"m", 127}, {"n", 65}}; an index not listed is not compared.
  std::map<std::string, Index> extents;
  bool source = true;  // `c` is available
};

// Throws Error(bad_request), with a caret under its use, if a scalar, an operand or c is missing or an
// operand's shape does not match its indices. Returns a sentence for each provided name that the expression
// does not use.
std::vector<std::string> check(Expression const& expression, Provided const& provided);

}  // namespace cosmati::epilogue
