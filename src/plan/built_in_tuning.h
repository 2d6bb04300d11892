// Measured choices that the library contains: src/plan/measured/h200.txt, lines as `cosmati tune` and `find`
// write them (docs/decisions/0006-tuning.md).
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "cosmati/ops/operation.h"
#include "cosmati/ops/tuning.h"

namespace cosmati::plan {

// The lines of that file; written by cmake/embed_text.cmake.
std::span<std::string_view const> built_in_tuning_lines();

// Returns the line for a class of problems: that of options.tuning, otherwise the built-in one unless the
// options exclude built-in lines; null if there is none. Built-in lines also apply to GPUs of the same
// compute capability and number of multiprocessors, and lines for one of f16 and bf16 also apply to the
// other, which takes the same time.
TuningLine const* line_of_class(PlanOptions const& options, std::string const& problems,
                                Device const& device);

// Whether there may be a built-in line for a matrix product, judged by its extents only, which is faster than
// by its class.
bool has_built_in_extents(Index m, Index n, Index k, Index batch);

}  // namespace cosmati::plan
