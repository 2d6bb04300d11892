// The message of validate() for a problem.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "cosmati/ops/tensor.h"

namespace cosmati::testing {

inline TensorDescription f32_of(Shape const& shape) { return describe(DataType::f32, shape); }

// The message of validate() for `problem` after `change`; empty if it accepts the problem.
template <class Problem, class Change>
std::string refusal(Problem problem, Change const& change) {
  change(problem);
  try {
    validate(problem);
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_request);
    return error.what();
  }
  return {};
}

inline constexpr auto as_it_is = [](auto const&) {};

}  // namespace cosmati::testing
