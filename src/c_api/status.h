// Converts exceptions to status codes and the thread's message: no exception leaves a function of the C
// interface.
#pragma once
#include <string>

#include "cosmati.h"
#include "cosmati/ops/error.h"

namespace cosmati::c_api {

// Call it in an exception handler: stores the exception's message and returns its code.
cosmati_status report() noexcept;

template <class Body>
cosmati_status guarded(Body const& body) noexcept {
  try {
    body();
    return COSMATI_SUCCESS;
  } catch (...) {
    return report();
  }
}

[[noreturn]] inline void refuse(std::string const& message) { throw Error(ErrorCode::bad_request, message); }

// "cosmati_run: plan is null".
inline void require(void const* pointer, char const* function, char const* name) {
  if (pointer == nullptr) refuse(std::string(function) + ": " + name + " is null");
}

}  // namespace cosmati::c_api
