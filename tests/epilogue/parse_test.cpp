// The grammar, and the exact three lines of its messages.
#include "cosmati/epilogue/parse.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/functions.h"
#include "cosmati/ops/error.h"

namespace cosmati::epilogue {
namespace {

std::string message_of(std::string_view text, std::span<std::string_view const> indices = gemm_indices) {
  try {
    parse(text, indices);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_request);
    return error.what();
  }
  return "no error";
}

std::string canonical(std::string_view text) { return to_string(parse(text)); }

TEST(EpilogueParse, ReadsTheExamplesOfTheLanguage) {
  EXPECT_EQ(canonical("relu(alpha * acc + beta * c + bias[n])"), "relu(alpha * acc + beta * c + bias[n])");
  EXPECT_EQ(canonical("gelu(acc * scale_a[m] * scale_b[n] + bias[n]) + residual[m, n]"),
            "gelu(acc * scale_a[m] * scale_b[n] + bias[n]) + residual[m, n]");
  EXPECT_EQ(canonical("clamp(round(acc * s), -128, 127)"), "clamp(round(acc * s), -128, 127)");
  EXPECT_EQ(canonical("let t = acc + bias[n]; store(pre, t); relu(t)"),
            "let t0 = acc + bias[n]; store(pre, t0); relu(t0)");
}

TEST(EpilogueParse, ListsWhatTheExpressionNeeds) {
  Expression const e =
      parse("let t = alpha * acc + w[batch, n, m]; store(pre, t); select(t > 0, t, beta * b[n])");
  EXPECT_EQ(e.scalars(), (std::vector<Scalar>{{"alpha", 0}, {"beta", 0}}));
  EXPECT_EQ(e.operands(), (std::vector<Operand>{{"w", {"batch", "n", "m"}, 0}, {"b", {"n"}, 0}}));
  EXPECT_EQ(e.operands()[0].column, 22u);
  ASSERT_EQ(e.stores().size(), 1u);
  EXPECT_EQ(e.stores()[0].name, "pre");
  EXPECT_TRUE(e.uses_accumulator());
  EXPECT_FALSE(e.uses_source());
  EXPECT_TRUE(parse("c").uses_source());
  EXPECT_FALSE(parse("c").uses_accumulator());
}

TEST(EpilogueParse, PrecedenceAndAssociativity) {
  EXPECT_EQ(canonical("a - b - d * e / f"), "a - b - d * e / f");
  EXPECT_EQ(canonical("a - (b - d)"), "a - (b - d)");
  EXPECT_EQ(canonical("a / (b * d)"), "a / (b * d)");
  EXPECT_EQ(canonical("-a * b"), "-a * b");
  EXPECT_EQ(canonical("-(a * b)"), "-(a * b)");
  EXPECT_EQ(canonical("a + b < d * e"), "a + b < d * e");
  EXPECT_EQ(canonical("(a < b) + 2"), "(a < b) + 2");
  EXPECT_EQ(canonical("(a < b) == (d < e)"), "(a < b) == (d < e)");
  EXPECT_EQ(canonical("((acc))\n\t+\r\n c"), "acc + c");
}

TEST(EpilogueParse, Numbers) {
  EXPECT_EQ(canonical("acc + 0.5"), "acc + 0.5");
  EXPECT_EQ(canonical("acc + .5"), "acc + 0.5");
  EXPECT_EQ(canonical("acc + 1e-3"), "acc + 0.001");
  EXPECT_EQ(canonical("acc + 2.E+2"), "acc + 200");
  EXPECT_EQ(parse("1.7976931348623157e308").nodes()[0].constant, 1.7976931348623157e308);
}

TEST(EpilogueParse, ConvolutionHasItsOwnIndices) {
  EXPECT_EQ(to_string(parse("relu(acc + bias[k]) + residual[n, k, p, q]", convolution_indices)),
            "relu(acc + bias[k]) + residual[n, k, p, q]");
  EXPECT_EQ(message_of("acc + bias[m]", convolution_indices),
            "unknown index 'm'; the indices here are n, k, p and q\n"
            "  acc + bias[m]\n"
            "             ^");
}

TEST(EpilogueParse, EveryFunctionIsKnownWithItsArity) {
  for (Function const& function : function_table()) {
    std::string text = std::string(function.name) + "(";
    char name = 'r';
    for (int i = 0; i < arity(function.op); ++i) text += (i == 0 ? "" : ", ") + std::string(1, name++);
    text += ")";
    EXPECT_EQ(canonical(text), text);
    EXPECT_FALSE(function.description.empty());
  }
  EXPECT_EQ(function_table().size(), 21u);
}

// The message about an unknown function, which lists all functions.
std::string unknown(std::string const& name, std::string const& nearest) {
  std::string text = "unknown function '" + name + "' (did you mean " + nearest + "?); valid functions: ";
  for (Function const& function : function_table())
    text += (&function == function_table().data() ? "" : ", ") + std::string(function.name);
  return text;
}

struct BadText {
  char const* text;
  std::string message;
};

TEST(EpilogueParse, FunctionsByAlias) {
  EXPECT_EQ(canonical("swish(acc)"), "silu(acc)");
  EXPECT_EQ(parse("maximum").scalars().size(), 1U);  // a name without parentheses is not an alias
}

TEST(EpilogueParse, MessagesPointAtTheColumn) {
  BadText const cases[] = {
      {"rleu(acc)", unknown("rleu", "relu") + "\n  rleu(acc)\n  ^"},
      {"acc + tahn(c)", unknown("tahn", "tanh") + "\n  acc + tahn(c)\n        ^"},
      {"relu(acc, 2)", "relu(x) takes 1 argument, not 2\n  relu(acc, 2)\n  ^"},
      {"1 + elu(acc)", "elu(x, alpha) takes 2 arguments, not 1\n  1 + elu(acc)\n      ^"},
      {"min()", "min(a, b) takes 2 arguments, not 0\n  min()\n  ^"},
      {"acc + bias[j]",
       "unknown index 'j'; the indices here are batch, m and n\n  acc + bias[j]\n             ^"},
      {"b[m, m]", "the index 'm' occurs twice\n  b[m, m]\n       ^"},
      {"b[]", "expected an index, found ']'; the indices here are batch, m and n\n  b[]\n    ^"},
      {"b[m n]", "expected ',' or ']' after an index, found 'n'\n  b[m n]\n      ^"},
      {"acc[m]", "'acc' cannot be indexed; it denotes the element being computed\n  acc[m]\n     ^"},
      {"c[m, n]", "'c' cannot be indexed; it denotes the element being computed\n  c[m, n]\n   ^"},
      {"let t = acc; t[m]",
       "'t' is defined by `let` and cannot be indexed\n  let t = acc; t[m]\n                ^"},
      {"let t = 1; let t = 2; t",
       "'t' is defined by `let` already\n  let t = 1; let t = 2; t\n                 ^"},
      {"let u = t; let t = 2; t",
       "'t' is used above as an input and cannot be defined by `let` here\n  let u = t; let t = 2; t\n"
       "                 ^"},
      {"let acc = 1; acc", "'acc' is reserved and cannot be redefined\n  let acc = 1; acc\n      ^"},
      {"let relu = 1; acc", "'relu' is reserved and cannot be redefined\n  let relu = 1; acc\n      ^"},
      {"let 2 = acc; acc", "expected a name after let, found '2'\n  let 2 = acc; acc\n      ^"},
      {"let t acc; t", "expected '=' after the name, found 'acc'\n  let t acc; t\n        ^"},
      {"let t = acc t", "expected ';' after the value of `let`, found 't'\n  let t = acc t\n              ^"},
      {"let t = acc;", "the final expression, the result, is missing\n  let t = acc;\n              ^"},
      {"store(p, acc);", "the final expression, the result, is missing\n  store(p, acc);\n                ^"},
      {"store(p, acc) acc",
       "expected ';' after store(...), found 'acc'\n  store(p, acc) acc\n                ^"},
      {"store(p, acc); store(p, c); 1",
       "'p' is stored already\n  store(p, acc); store(p, c); 1\n                       ^"},
      {"store(p, acc); p",
       "'p' is the name of an output and cannot be an input\n  store(p, acc); p\n                 ^"},
      {"store(p, p[m]); 1",
       "'p' is the name of an output and cannot be an input\n  store(p, p[m]); 1\n           ^"},
      {"acc + store(p, acc)",
       "'store' is a statement; it must precede the final expression\n  acc + store(p, acc)\n        ^"},
      {"s + s[m]", "'s' is a scalar above and an array here\n  s + s[m]\n      ^"},
      {"s[m] + s", "'s' is an array above, s[m], and a scalar here\n  s[m] + s\n         ^"},
      {"s[m] + s[n]", "'s' is s[m] above and s[n] here\n  s[m] + s[n]\n         ^"},
      {"acc c", "expected an operator or the end of the expression, found 'c'\n  acc c\n      ^"},
      {"acc)", "expected an operator or the end of the expression, found ')'\n  acc)\n     ^"},
      {"acc;",
       "nothing may follow the final expression; ';' ends `let` and `store` statements only\n  acc;\n     ^"},
      {"(acc", "expected ')' here, found the end\n  (acc\n      ^"},
      {"acc +", "expected a value, found the end\n  acc +\n       ^"},
      {"+acc", "expected a value, found '+'\n  +acc\n  ^"},
      {"max(acc 1)", "expected ',' or ')' here, found '1'\n  max(acc 1)\n          ^"},
      {"max(acc, )", "expected a value, found ')'\n  max(acc, )\n           ^"},
      {"relu", "'relu' is a function; write relu(x)\n  relu\n  ^"},
      {"acc(1)", "'acc' is a value, not a function\n  acc(1)\n  ^"},
      {"a < b < d", "comparisons cannot be chained; write (a < b) * (b < c)\n  a < b < d\n        ^"},
      {"acc = 1", "'=' belongs to `let` statements; the comparison is '=='\n  acc = 1\n      ^"},
      {"acc ^ 2", "'^' is not supported; use pow(x, y)\n  acc ^ 2\n      ^"},
      {"acc ! c", "unexpected character '!'\n  acc ! c\n      ^"},
      {"acc + 1e999", "the number 1e999 is outside the range of a double\n  acc + 1e999\n        ^"},
      {"2x", "unexpected 'x' after the number 2; numbers look like 2, 0.5 or 1e-3\n  2x\n   ^"},
      {"", "the expression is empty; the simplest one is acc\n  \n  ^"},
      {"acc +\n\xc3\x97 c", "unexpected character 0xc3\n  acc + ?? c\n        ^"},
  };
  for (BadText const& bad : cases) EXPECT_EQ(message_of(bad.text), bad.message) << bad.text;
}

TEST(EpilogueParse, UnknownFunctionWithoutASimilarNameListsAll) {
  std::string const message = message_of("softplus(acc)");
  EXPECT_EQ(message.substr(0, 57), "unknown function 'softplus'; valid functions: abs, clamp,");
}

TEST(EpilogueParse, LongTextsAreShownAroundTheCaret) {
  std::string text = "acc";
  for (int i = 0; i < 40; ++i) text += " + bias[n]";
  text += " + oops(1)";
  for (int i = 0; i < 40; ++i) text += " + bias[n]";
  std::string const message = message_of(text);
  std::size_t const second = message.find('\n') + 1;
  std::size_t const third = message.find('\n', second) + 1;
  std::string const shown = message.substr(second, third - second - 1);
  EXPECT_EQ(shown.substr(0, 5), "  ...");
  EXPECT_EQ(shown.substr(shown.size() - 3), "...");
  EXPECT_EQ(shown.substr(message.size() - 1 - third, 4), "oops");
}

TEST(EpilogueParse, LimitsAreStated) {
  std::string const open(max_nesting - 1, '('), close(max_nesting - 1, ')');
  EXPECT_EQ(canonical(open + "acc" + close), "acc");
  EXPECT_NE(message_of(open + "(acc)" + close).find("nested more than 128 deep"), std::string::npos);
  EXPECT_NE(message_of(std::string(1000, '-') + "acc").find("nested more than 128 deep"), std::string::npos);
  std::string const long_text = "acc" + std::string(max_text_length, ' ');
  EXPECT_NE(message_of(long_text).find("has 16387 characters, at most 16384"), std::string::npos);
  EXPECT_NE(message_of(std::string(65, 'x')).find("a name has 65 characters, at most 64"), std::string::npos);
  std::string chain = "acc";
  for (std::size_t i = 0; i < max_nodes; ++i) chain += "+exp(acc)*" + std::to_string(i);
  EXPECT_NE(message_of(chain).find("more than 1024 values and operations"), std::string::npos);
}

}  // namespace
}  // namespace cosmati::epilogue
