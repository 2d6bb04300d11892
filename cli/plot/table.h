// The tables of a report of measurements.
#pragma once
#include <string>
#include <vector>

#include "cli/plot/ratio.h"

namespace cosmati::cli {

// <tr> rows: one per group, linked to its chart; and one per measurement.
std::string summary_rows(std::vector<RatioGroup> const& groups);
std::string measurement_rows(std::vector<PlotRecord> const& records);

}  // namespace cosmati::cli
