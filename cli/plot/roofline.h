// Rooflines: attainable and measured performance of problems by their arithmetic intensity (Williams,
// Waterman, Patterson: "Roofline", Communications of the ACM 52, 2009).
#pragma once
#include <string>
#include <vector>

#include "cli/plot/records.h"

namespace cosmati::cli {

// A <figure> for each device, with the peaks measured there; empty if no record has operations and bytes.
std::string roofline_figures(std::vector<PlotRecord> const& records);

std::string in_powers(double value);  // "64.96 T"

}  // namespace cosmati::cli
