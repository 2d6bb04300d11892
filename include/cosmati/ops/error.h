// The exception type of the host API: an error code, and a sentence with the values for the user.
#pragma once
#include "cosmati/core/cxx20.h"

#include <stdexcept>
#include <string>

namespace cosmati {

enum class ErrorCode {
  wrong_result,   // a verification failed
  bad_request,    // the request is invalid
  bad_file,       // a file is malformed
  unavailable,    // a backend, device or library is not available
  out_of_memory,  // an allocation failed
  system,         // an operating system call failed; the message contains its reason
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string const& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace cosmati
