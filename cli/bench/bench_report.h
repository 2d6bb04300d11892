// The output of bench for one measurement: a JSON record and a table row.
#pragma once
#include <string>
#include <vector>

#include "cli/bench/interleaved.h"
#include "cli/output/record.h"

namespace cosmati::cli {

// Measured peak performance of the machine; 0 if unknown.
struct Ceilings {
  std::string name;                 // what `operations` counts, e.g. "f32 fma"
  double operations = 0;            // operations per second
  double bytes = 0;                 // bytes read plus bytes written per second
  double burst = 0, sustained = 0;  // both rates if both were measured; `operations` is one of them
};

// Identifies a measurement.
struct Provenance {
  std::string suite;  // empty if the problem belongs to no suite
  std::string subject, type;
  std::string digest;  // kernel_digest()
};

struct Measurement {
  Provenance what;
  Task const& task;
  Device const& device;
  InterleavedRules rules;
  long long seed = 1;
  InterleavedResult const& result;
  std::optional<Verdict> verdict;  // empty if the result was not verified
  Ceilings ceilings;
};

// The first part of a record; also the complete output of --digest.
Record digest_record(Provenance const& what, Task const& task, Device const& device, Choice const& choice);
// `peer` may be null.
Record bench_record(Measurement const& measurement, PeerResult const* peer);
// One line of the file --peer-log.
Record trial_record(Measurement const& measurement, PeerResult const& peer, PeerTrial const& trial);
std::vector<std::string> bench_heads();
std::vector<std::string> bench_row(Measurement const& measurement, PeerResult const* peer);
// Explains how the numbers of the table are measured.
std::string bench_method(InterleavedRules const& rules, bool on_gpu);

}  // namespace cosmati::cli
