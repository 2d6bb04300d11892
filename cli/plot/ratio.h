// Bar charts of ratios to peers.
#pragma once
#include <string>
#include <vector>

#include "cli/plot/records.h"

namespace cosmati::cli {

// One chart: the problems of a suite, for one type, one device and one peer.
struct RatioGroup {
  std::string id;  // unique within the page
  std::vector<PlotRecord const*> records;
  long long without_ratio = 0;  // problems that the peer does not support

  PlotRecord const& first() const { return *records.front(); }
};

// Summary of the correct results.
struct RatioSummary {
  long long count = 0;
  double mean = 0;  // geometric mean
  double minimum = 0, largest = 0;
};

// In the order of the records, with those of a suite together; records without a peer belong to no group.
std::vector<RatioGroup> ratio_groups(std::vector<PlotRecord> const& records);
RatioSummary summary_of(RatioGroup const& group);
// "bf16"; with a non-default type of sums, "f16, sums in f16".
std::string type_text(PlotRecord const& record);
std::string peer_text(PlotRecord const& record);  // "cublaslt (cuBLASLt 13.1.0)"

std::string ratio_text(double ratio);                 // "0.936"
std::string interval_text(PlotRecord const& record);  // "0.936 [0.934, 0.938]"

// A <figure> with a bar for each problem, starting at 0, with its 95% interval and a mark at 1.
std::string ratio_figure(RatioGroup const& group);

}  // namespace cosmati::cli
