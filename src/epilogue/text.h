// Common parts of the two printers of expressions.
#pragma once
#include <string>

#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

std::string number_text(double value);  // the shortest decimal that converts back to `value`
std::string_view operator_text(Op op);  // "+" of Op::add; empty if `op` is not a binary operator
std::string text_of(std::vector<std::string> const& indices);  // "[m, n]"
std::string text_of(Operand const& operand);                   // "bias[n]"

}  // namespace cosmati::epilogue
