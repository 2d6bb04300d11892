// Names and shapes of an expression against those provided.
#include "cosmati/epilogue/check.h"

#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/error.h"

namespace cosmati::epilogue {
namespace {

Provided provided() {
  return {{"alpha", "beta"}, {{"bias", {333}}, {"residual", {127, 333}}}, {{"m", 127}, {"n", 333}}, true};
}

std::string message_of(std::string_view text, Provided const& given) {
  try {
    check(parse(text), given);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_request);
    return error.what();
  }
  return "no error";
}

TEST(EpilogueCheck, AcceptsWhatFits) {
  EXPECT_TRUE(check(parse("alpha * acc + beta * c + bias[n] + residual[m, n]"), provided()).empty());
}

TEST(EpilogueCheck, UnusedNamesAreWarnings) {
  EXPECT_EQ(
      check(parse("alpha * acc + bias[n]"), provided()),
      (std::vector<std::string>{"the scalar 'beta' was given, but the expression does not use it",
                                "the operand 'residual' was given, but the expression does not use it"}));
}

TEST(EpilogueCheck, WhatIsMissingHasACaret) {
  EXPECT_EQ(message_of("acc * gamma", provided()),
            "no value was given for the scalar 'gamma'\n  acc * gamma\n        ^");
  EXPECT_EQ(message_of("acc * alhpa", provided()),
            "no value was given for the scalar 'alhpa' (did you mean alpha?)\n  acc * alhpa\n        ^");
  EXPECT_EQ(message_of("acc + bais[n]", provided()),
            "no array was given for the operand 'bais' (did you mean bias?)\n  acc + bais[n]\n        ^");
  EXPECT_EQ(message_of("acc + alpha[n]", provided()),
            "alpha[n] needs an array, but a scalar was given for 'alpha'\n  acc + alpha[n]\n        ^");
  EXPECT_EQ(message_of("acc + bias", provided()),
            "'bias' is used as a scalar, but an array was given for it; write bias[...] with its indices\n"
            "  acc + bias\n        ^");
  Provided without_source = provided();
  without_source.source = false;
  EXPECT_EQ(message_of("acc + c", without_source),
            "the expression reads c, but no matrix C was given\n  acc + c\n        ^");
  EXPECT_EQ(message_of("acc + 0 * c", without_source), "no error");
  EXPECT_EQ(message_of("store(bias, acc); acc", provided()),
            "'bias' is an output of the expression and was given as an input too\n  store(bias, acc); acc\n  "
            "      ^");
}

TEST(EpilogueCheck, ShapesFollowFromTheIndices) {
  EXPECT_EQ(message_of("acc + bias[m]", provided()),
            "the operand 'bias' has the shape (333), but bias[m] needs (127)\n  acc + bias[m]\n        ^");
  EXPECT_EQ(message_of("acc + residual[n, m]", provided()),
            "the operand 'residual' has the shape (127, 333), but residual[n, m] needs (333, 127)\n"
            "  acc + residual[n, m]\n        ^");
  EXPECT_EQ(message_of("acc + residual[n]", provided()),
            "the operand 'residual' has the shape (127, 333), but residual[n] needs (333)\n"
            "  acc + residual[n]\n        ^");
  EXPECT_EQ(message_of("acc + bias[batch]", provided()), "no error");  // the extent of batch is unknown
  EXPECT_EQ(message_of("acc + bias[batch, n]", provided()),
            "the operand 'bias' has the shape (333), but bias[batch, n] needs (?, 333)\n"
            "  acc + bias[batch, n]\n        ^");
}

}  // namespace
}  // namespace cosmati::epilogue
