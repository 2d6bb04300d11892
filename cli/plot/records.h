// Measurements written by `cosmati bench --json`, as read by `cosmati plot`.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace cosmati::cli {

// Missing numbers are 0, missing texts empty.
struct PlotRecord {
  std::string suite;  // of older records, which do not tell: the name of their file
  std::string subject, problem, type, sums;
  std::string kernel, policy, device, commit;
  std::string peer, peer_version, refusal;
  std::string state;           // "verified", "WRONG, throttled to 87%"
  std::string peak;            // what peak_gflops counts: "f32 fma"
  bool above_ceiling = false;  // the rate, or the peak that was measured, is wrong
  bool wrong = false;
  double seconds = 0;                      // median of one call
  double gflops = 0;                       // 10^9 operations a second
  double intensity = 0;                    // operations a byte of operands and result
  double peak_gflops = 0, copy_bytes = 0;  // a second; measured in the same run
  double peak_burst_gflops = 0;            // of short runs, where peak_gflops is of long ones
  double share_of_peak = 0, share_of_copy = 0;
  double ratio = 0, ratio_low = 0, ratio_high = 0;  // the peer's time / ours
  long long time = 0;                               // seconds since 1970
};

struct PlotInput {
  std::vector<PlotRecord> records;  // in the order of the files; of equal ones the last
  std::vector<std::string> files;
  std::map<std::string, long long> skipped;  // why -> how many lines
  long long replaced = 0;                    // measurements of which a later one was taken
};

// Throws Error(bad_file) that names file and line where a line is not JSON, and where nothing was measured.
PlotInput read_plot_records(std::vector<std::string> const& files);

// "2 lines without a time or a rate, 1 line of another verb"; empty: none was skipped.
std::string skipped_text(PlotInput const& input);

}  // namespace cosmati::cli
