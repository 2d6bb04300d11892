// The message of a rejected call.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "cosmati/ops/error.h"

namespace cosmati::testing {

// The message of the Error that work() throws, which must have this code.
template <class Work>
std::string complaint_of(Work const& work, ErrorCode code = ErrorCode::bad_request) {
  try {
    work();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace cosmati::testing
