// Where exceptions become status codes and the thread's message: nothing is thrown past a function of the C
// interface.
#pragma once
#include <string>

#include "cosmati.h"
#include "cosmati/ops/error.h"

namespace cosmati::c_api {

// In a handler: keeps what the exception says, and returns its code.
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
