// Applies gaps and misalignment to arrays.
#include "cli/options/placement.h"

#include <algorithm>

#include "cli/data/random_data.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

void check_range(char const* option, long long value, long long maximum, char const* unit) {
  if (value < 0 || value > maximum)
    throw Error(ErrorCode::bad_request, std::string(option) + ' ' + std::to_string(value) +
                                            " is invalid; valid values: 0 to " + std::to_string(maximum) +
                                            ' ' + unit);
}

}  // namespace

void add_placement_options(Options& options, Placement& placement) {
  options.integer("--gap", placement.gap, "extra elements between rows or columns, planes and images")
      .integer("--misalign", placement.misalignment,
               "offset of each array in bytes from a multiple of 64, rounded up to a multiple of its "
               "element size; known to the plan");
}

Index offset_of(TensorDescription const& description, Index misalignment) {
  Index const size = size_of(description.type);
  return (misalignment + size - 1) / size * size;
}

void promise_alignment(Task& task, Index misalignment) {
  task.visit([misalignment](char const*, Role, TensorDescription& description) {
    Index const offset = offset_of(description, misalignment);
    // The largest power of two that divides the offset.
    if (offset != 0)
      description.alignment =
          static_cast<int>(std::min<Index>(offset & -offset, TensorDescription::default_alignment));
  });
}

void place(Task& task, Placement const& placement) {
  check_range("--gap", placement.gap, 65536, "elements");
  check_range("--misalign", placement.misalignment, 63, "bytes");
  if (placement.gap > 0) {
    task.visit([&placement](char const*, Role, TensorDescription& description) {
      if (description.layout.rank() > 1)
        description.layout = with_gaps(description.layout, [&placement] { return placement.gap; });
    });
    task.notes.label += " gap " + std::to_string(placement.gap);
  }
  if (placement.misalignment > 0) {
    promise_alignment(task, placement.misalignment);
    task.notes.label += " misaligned by " + std::to_string(placement.misalignment);
  }
}

}  // namespace cosmati::cli
