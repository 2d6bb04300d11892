// Measured choices for problems of one class on one device: which kernel was the fastest (`cosmati find`), or
// which kernel, policy and split of k (`cosmati tune`). A line of text each; plans go by them where
// PlanOptions::tuning says so.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "cosmati/ops/device.h"

namespace cosmati {

struct TuningLine {
  // The subject and the class: "gemm a=bf16/k8 b=bf16/k8 ... m=4096 n=4096 k=4096 batch=1"; what the words
  // mean say docs/decisions/0006-tuning.md and, of lines of find, 0021-finding.md.
  std::string problems;
  std::string gpu;             // tuning_name() of it; of a host, what plans depend on
  std::string kernel;          // "multistage"
  std::string policy;          // every field, as --policy takes them; empty: the line names the kernel alone
  int splits = 1;              // parts of k
  std::string measured = {};   // the problem of that class that was measured: "4096x4096x4096x1"
  double seconds = 0;          // that it took so
  double planned_seconds = 0;  // that it took as planned without this line, measured in turns with it
  std::string driver = {}, version = {};  // of the GPU, of this library
  std::string time = {};                  // "2026-01-31T23:59:59Z"
  std::string origin = {};                // "tuning.txt, line 3"; not written
  std::string recipe = {};                // without a policy: how the kernel ran, for people
};

// What a GPU is known by: name, compute capability, multiprocessors. A described one has the same.
std::string tuning_name(Gpu const& gpu);
std::string to_string(TuningLine const& line);  // without an end of line

// A measured or proposed choice, and what the plan predicts of it.
struct TuningContender {
  TuningLine line;
  double predicted_seconds = 0;
  std::string recipe;  // for people
};

class TuningTable {
 public:
  // Lines of a file; # begins a comment. `name` is told in messages. Throws Error(bad_file) with the line
  // that is none, and why.
  static TuningTable parse(std::string_view text, std::string const& name);

  // Of two lines for one class and GPU the newer stays, of two of one second the faster: whoever adds them,
  // in whatever order.
  void add(TuningLine const& line);
  void add(TuningTable const& other);

  // Null if there is none.
  TuningLine const* find(std::string const& problems, std::string const& gpu) const;
  std::size_t size() const { return lines_.size(); }
  std::string text() const;  // of a file, in an order of its own

 private:
  std::map<std::string, TuningLine> lines_;  // by class and GPU
};

}  // namespace cosmati
