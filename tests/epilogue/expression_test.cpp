// Folding, sharing, canonical order, text and back, bind.
#include "cosmati/epilogue/expression.h"

#include <gtest/gtest.h>

#include <limits>

#include "cosmati/epilogue/parse.h"
#include "tests/epilogue/random_expression.h"

namespace cosmati::epilogue {
namespace {

std::string bound(std::string_view text, std::map<std::string, double> const& values) {
  return to_string(bind_scalars(parse(text), values));
}

TEST(EpilogueExpression, DefaultIsTheAccumulator) {
  EXPECT_EQ(Expression(), parse("acc"));
  EXPECT_EQ(to_string(Expression()), "acc");
}

TEST(EpilogueExpression, ConstantsAreFolded) {
  EXPECT_EQ(to_string(parse("acc * (2 * 3 + sqrt(16))")), "acc * 10");
  EXPECT_EQ(to_string(parse("acc + select(1 < 2, 5, 7)")), "acc + 5");
  EXPECT_EQ(to_string(parse("acc * 1 / 1 + 0 - 0")), "acc");
  EXPECT_EQ(to_string(parse("--acc")), "acc");
  EXPECT_EQ(to_string(parse("alpha * acc + 0 * c")), "alpha * acc");
  EXPECT_EQ(to_string(parse("acc + 1 / 0")), "acc + 1 / 0");  // infinity has no literal
  EXPECT_EQ(to_string(parse("0 * acc")), "0 * acc");          // acc may be infinite
}

TEST(EpilogueExpression, RepeatedValuesOccurOnce) {
  Expression const e = parse("exp(acc) + exp(acc) * exp(acc)");
  EXPECT_EQ(e.nodes().size(), 4u);
  EXPECT_EQ(to_string(e), "let t0 = exp(acc); t0 + t0 * t0");
}

TEST(EpilogueExpression, UnusedValuesDoNotOccur) {
  Expression const e = parse("let unused = s * b[n] + c; acc");
  EXPECT_EQ(e, Expression());
  EXPECT_TRUE(e.scalars().empty());
  EXPECT_TRUE(e.operands().empty());
}

TEST(EpilogueExpression, OrderOfDefinitionDoesNotMatter) {
  EXPECT_EQ(parse("let b = c * beta; let a = acc * alpha; a + b"), parse("acc * alpha + c * beta"));
  EXPECT_FALSE(parse("acc * alpha + c * beta") == parse("acc * gamma + c * beta"));
  EXPECT_FALSE(parse("acc + b[m]") == parse("acc + b[n]"));
  EXPECT_FALSE(parse("store(p, acc); c") == parse("store(q, acc); c"));
  EXPECT_FALSE(parse("acc + c") == parse("acc - c"));
  EXPECT_FALSE(parse("min(acc, -0)") == parse("min(acc, 0)"));
}

TEST(EpilogueExpression, NodesComeInEvaluationOrder) {
  Expression const e = parse("relu(acc + bias[n])");
  ASSERT_EQ(e.nodes().size(), 4u);
  EXPECT_EQ(e.nodes()[0].op, Op::accumulator);
  EXPECT_EQ(e.nodes()[1].op, Op::operand);
  EXPECT_EQ(e.nodes()[1].slot, 0);
  EXPECT_EQ(e.nodes()[2].op, Op::add);
  EXPECT_EQ(e.nodes()[2].operand, (std::array<int, 3>{0, 1, -1}));
  EXPECT_EQ(e.nodes()[3].op, Op::relu);
  EXPECT_EQ(e.result(), 3);
}

TEST(EpilogueExpression, NewNamesAvoidTheOnesInUse) {
  EXPECT_EQ(to_string(parse("exp(t0) * exp(t0) + t1[m]")), "let t2 = exp(t0); t2 * t2 + t1[m]");
}

TEST(EpilogueExpression, DeepValuesStillParse) {
  std::string text = "let a0 = acc; ";
  for (int i = 1; i <= 300; ++i)
    text += "let a" + std::to_string(i) + " = c + 1 / a" + std::to_string(i - 1) + "; ";
  Expression const e = parse(text + "a300");
  EXPECT_EQ(parse(to_string(e)), e);
}

TEST(EpilogueExpression, RandomTextsSurviveTheRoundTrip) {
  RandomExpression random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string const text = random.text();
    Expression const e = parse(text);
    std::string const printed = to_string(e);
    ASSERT_EQ(parse(printed), e) << text << "\n" << printed;
    ASSERT_EQ(to_string(parse(printed)), printed);
  }
}

TEST(EpilogueBind, TurnsScalarsIntoConstants) {
  EXPECT_EQ(bound("alpha * acc + beta * c", {{"alpha", 1}, {"beta", 0}}), "acc");
  EXPECT_EQ(bound("alpha * acc + beta * c", {{"alpha", 2}, {"beta", 1}}), "2 * acc + c");
  EXPECT_EQ(bound("alpha * acc + s", {{"alpha", -0.5}, {"other", 3}}), "-0.5 * acc + s");
  EXPECT_EQ(bound("store(p, acc * s); leaky_relu(c, s)", {{"s", 0.25}}),
            "store(p, acc * 0.25); leaky_relu(c, 0.25)");
  EXPECT_EQ(bound("s * acc", {{"s", std::numeric_limits<double>::infinity()}}), "s * acc");
}

}  // namespace
}  // namespace cosmati::epilogue
