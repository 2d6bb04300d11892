// Random texts of the epilogue language for tests that compare its lowerings.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "cosmati/epilogue/functions.h"

namespace cosmati::epilogue {

class RandomExpression {
 public:
  explicit RandomExpression(unsigned seed) : random_(seed) {}

  std::string text() {
    lets_.clear();
    std::string result;
    for (int i = pick(3); i > 0; --i) {
      std::string const name = "t" + std::to_string(lets_.size());
      result += "let " + name + " = " + value(3) + "; ";
      lets_.push_back(name);
    }
    for (int i = pick(3); i > 0; --i) result += "store(out" + std::to_string(i) + ", " + value(2) + "); ";
    return result + value(4);
  }

  double number(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  std::string leaf() {
    static char const* const leaves[] = {"acc",          "c",       "alpha", "beta", "bias[n]", "scale[m]",
                                         "shift[batch]", "w[m, n]", "0.5",   "3",    "1e-2",    "2.25e1"};
    int const count = static_cast<int>(std::size(leaves));
    int const chosen = pick(count + static_cast<int>(lets_.size()));
    return chosen < count ? leaves[chosen] : lets_[static_cast<std::size_t>(chosen - count)];
  }

  std::string value(int depth) {
    if (depth == 0 || pick(6) == 0) return leaf();
    static char const* const operators[] = {"+", "-", "*", "/", "+", "*", "<", "<=", ">", ">=", "==", "!="};
    switch (pick(4)) {
      case 0: return "-(" + value(depth - 1) + ")";
      case 1: {
        auto const table = function_table();
        Function const& function = table[static_cast<std::size_t>(pick(static_cast<int>(table.size())))];
        std::string call = std::string(function.name) + "(";
        for (int i = 0; i < arity(function.op); ++i) call += (i == 0 ? "" : ", ") + value(depth - 1);
        return call + ")";
      }
      default:
        return "(" + value(depth - 1) + " " + operators[pick(static_cast<int>(std::size(operators)))] + " " +
               value(depth - 1) + ")";
    }
  }

  std::mt19937 random_;
  std::vector<std::string> lets_;
};

}  // namespace cosmati::epilogue
