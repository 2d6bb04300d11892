// The files that a training will write, checked before it begins.
#pragma once
#include <string>

#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati::cli {

// io::check_writable() of what `option` names; empty: nothing will be written.
inline void check_output(std::string const& option, std::string const& path) {
  if (path.empty()) return;
  try {
    io::check_writable(path);
  } catch (Error const& error) {
    throw Error(error.code(), option + " " + error.what());
  }
}

}  // namespace cosmati::cli
