// Rooflines: the attainable performance of a problem by its arithmetic intensity, and the measured one
// (Williams, Waterman, Patterson: "Roofline", Communications of the ACM 52, 2009).
#pragma once
#include <string>
#include <vector>

#include "cli/plot/records.h"

namespace cosmati::cli {

// A <figure> for each device, with the ceilings that were measured there; empty where no record tells its
// operations and bytes.
std::string roofline_figures(std::vector<PlotRecord> const& records);

std::string in_powers(double value);  // "64.96 T"

}  // namespace cosmati::cli
