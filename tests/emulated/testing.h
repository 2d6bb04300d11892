// Helpers for tests of the emulator: kernels are templates declared as for a GPU.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "cosmati/arch/config.h"
#include "cosmati/arch/emulator.h"
#include "cosmati/ops/error.h"

namespace cosmati::testing {

// The error message of a launch; empty if it succeeds.
template <class Launch>
std::string report_of(Launch const& launch, ErrorCode code = ErrorCode::wrong_result) {
  try {
    launch();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return {};
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "the report: " << (text)

template <class T>
T* shared() {
  return reinterpret_cast<T*>(emulator::shared_memory());
}

}  // namespace cosmati::testing
