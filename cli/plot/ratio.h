// Ratios to peers as bars.
#pragma once
#include <string>
#include <vector>

#include "cli/plot/records.h"

namespace cosmati::cli {

// One chart: the problems of a suite, in one type, on one device, against one peer.
struct RatioGroup {
  std::string id;  // in the page
  std::vector<PlotRecord const*> records;
  long long without_ratio = 0;  // the peer refused them

  PlotRecord const& first() const { return *records.front(); }
};

// Summary of the correct results.
struct RatioSummary {
  long long count = 0;
  double mean = 0;  // geometric
  double least = 0, largest = 0;
};

// In the order of the records, those of a suite together; records without a peer are in no group.
std::vector<RatioGroup> ratio_groups(std::vector<PlotRecord> const& records);
RatioSummary summary_of(RatioGroup const& group);
// "bf16"; where sums are in another type than the usual one, "f16, sums in f16".
std::string type_text(PlotRecord const& record);
std::string peer_text(PlotRecord const& record);  // "cublaslt (cuBLASLt 13.1.0)"

std::string ratio_text(double ratio);                 // "0.936"
std::string interval_text(PlotRecord const& record);  // "0.936 [0.934, 0.938]"

// <figure>: a bar for each problem, from 0, with the interval of 95% and a mark at 1.
std::string ratio_figure(RatioGroup const& group);

}  // namespace cosmati::cli
