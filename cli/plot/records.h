// Measurements written by `cosmati bench --json`, as read by `cosmati plot`.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace cosmati::cli {

// Missing numbers are 0; missing strings are empty.
struct PlotRecord {
  std::string suite;  // for older records without a suite: the name of their file
  std::string subject, problem, type, sums;
  std::string kernel, policy, device, commit;
  std::string peer, peer_version, refusal;
  std::string state;           // "verified", "FAILED, throttled to 87%"
  std::string peak;            // what peak_gflops counts: "f32 fma"
  bool above_ceiling = false;  // the rate or the measured peak is wrong
  bool wrong = false;
  double seconds = 0;                      // median of one call
  double gflops = 0;                       // 10^9 operations per second
  double intensity = 0;                    // operations per byte of operands and result
  double peak_gflops = 0, copy_bytes = 0;  // GFLOP/s and bytes/s, measured in the same run
  double peak_burst_gflops = 0;            // peak of short runs; peak_gflops is then the sustained one
  double share_of_peak = 0, share_of_copy = 0;
  double ratio = 0, ratio_low = 0, ratio_high = 0;  // peer's time / our time
  long long time = 0;                               // seconds since 1970
};

struct PlotInput {
  std::vector<PlotRecord> records;  // in the order of the files; only the last of repeated measurements
  std::vector<std::string> files;
  std::map<std::string, long long> skipped;  // reason -> number of lines
  long long replaced = 0;                    // measurements replaced by a later repetition
};

// Throws Error(bad_file) naming file and line if a line is not JSON, or if there is no measurement.
PlotInput read_plot_records(std::vector<std::string> const& files);

// "2 lines without a time or a rate, 1 line of another verb"; empty if none was skipped.
std::string skipped_text(PlotInput const& input);

}  // namespace cosmati::cli
