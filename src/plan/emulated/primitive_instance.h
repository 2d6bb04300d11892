// The instances of primitive kernels that the emulator has, one for all types and expressions.
#pragma once
#include <fmt/format.h>

#include <string>

#include "cosmati/primitive/arguments.h"

namespace cosmati::plan {

// The parameters of a policy that distinguish the emulator's kernels; a kernel uses some of them, and the
// others have these values.
struct PrimitiveInstance {
  int width = 1;
  bool runs_of_terms = false, cached = false, cluster = false, packed = false;
  WindowPolicy window;

  // The KernelSpec::traits of the instance.
  std::string print() const {
    std::string text = fmt::format("runs of {}", width);
    if (runs_of_terms) text += ", of terms";
    if (cached) text += ", cached";
    if (packed) text += ", packed";
    if (cluster) text += ", clusters";
    if (window.columns > 0)
      text += fmt::format(", windows {}x{}, {}x{}, {}, {}, {}", window.rows, window.columns, window.down,
                          window.along, window.pad, window.padded, window.runs_of_columns);
    return text;
  }
};

}  // namespace cosmati::plan
