// Measured choices for problems of one class on one device: which kernel was the fastest (`cosmati find`), or
// which kernel, policy and split of k (`cosmati tune`). Each is one line of text; plans use them through
// PlanOptions::tuning.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "cosmati/ops/device.h"

namespace cosmati {

struct TuningLine {
  // The operation and the class: "gemm a=bf16/k8 b=bf16/k8 ... m=4096 n=4096 k=4096 batch=1"; for the syntax
  // see docs/decisions/0006-tuning.md and, for lines written by find, 0021-finding.md.
  std::string problems;
  std::string gpu;             // tuning_name() of the GPU; for a host, the properties that plans depend on
  std::string kernel;          // "multistage"
  std::string policy;          // all fields, as in --policy; empty: the line names only the kernel
  int splits = 1;              // parts of k
  std::string measured = {};   // the measured problem of the class: "4096x4096x4096x1"
  double seconds = 0;          // measured time with this choice
  double planned_seconds = 0;  // measured time of the plan without this line, interleaved with it
  std::string driver = {}, version = {};  // versions of the GPU driver and of this library
  std::string time = {};                  // "2026-01-31T23:59:59Z"
  std::string origin = {};                // "tuning.txt, line 3"; not written
  std::string recipe = {};                // without a policy: the kernel's parameters in readable form
};

// Identifies a GPU: name, compute capability, multiprocessors. The same for a described and a present GPU.
std::string tuning_name(Gpu const& gpu);
std::string to_string(TuningLine const& line);  // without an end of line

// A measured or proposed choice, with its predicted time.
struct TuningCandidate {
  TuningLine line;
  double predicted_seconds = 0;
  std::string recipe;  // in readable form
};

class TuningTable {
 public:
  // Lines of a file; # begins a comment. `name` is used in messages. Throws Error(bad_file) with the
  // malformed line and the reason.
  static TuningTable parse(std::string_view text, std::string const& name);

  // Keeps the newer of two lines for the same class and GPU, and the faster one if their times are equal,
  // independently of the order of additions.
  void add(TuningLine const& line);
  void add(TuningTable const& other);

  // Null if there is none.
  TuningLine const* find(std::string const& problems, std::string const& gpu) const;
  std::size_t size() const { return lines_.size(); }
  std::string text() const;  // the contents of a file, sorted

 private:
  std::map<std::string, TuningLine> lines_;  // by class and GPU
};

}  // namespace cosmati
