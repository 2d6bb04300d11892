// The functions of the epilogue language, as accepted by the parser and printed by `list epilogue-functions`.
#pragma once
#include <span>
#include <string_view>

#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

struct Function {
  Op op;
  std::string_view name;
  std::string_view parameters;   // "x, slope"
  std::string_view description;  // one line: the formula, and how NaN is treated if not obvious
};

std::span<Function const> function_table();
Function const* find_function(std::string_view name);  // null if there is none

}  // namespace cosmati::epilogue
