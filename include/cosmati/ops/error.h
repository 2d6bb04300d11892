// The one exception type of the host API: a code for programs, a sentence with values for people.
#pragma once
#include "cosmati/core/cxx20.h"

#include <stdexcept>
#include <string>

namespace cosmati {

enum class ErrorCode {
  wrong_result,   // a verification failed
  bad_request,    // what was asked for is not defined
  bad_file,       // a file is not what it should be
  unavailable,    // a backend, device or library is not here
  out_of_memory,  // an allocation failed
  system,         // the operating system refused; the message holds its reason
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string const& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace cosmati
