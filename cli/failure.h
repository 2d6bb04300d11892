// Converts exceptions into one sentence and an exit status.
#pragma once
#include "cosmati/ops/error.h"

namespace cosmati::cli {

inline constexpr int exit_wrong = 1;        // a result is wrong, or a run is too slow
inline constexpr int exit_bad_request = 2;  // invalid command line or file
inline constexpr int exit_unavailable = 3;  // backend or peer is not available

constexpr int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::wrong_result: return exit_wrong;
    case ErrorCode::unavailable: return exit_unavailable;
    default: return exit_bad_request;
  }
}

}  // namespace cosmati::cli
