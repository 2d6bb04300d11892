// Some elements of a result in device memory, for a peer's to be compared with.
#pragma once
#include <string>
#include <vector>

#include "cli/gpu_operands.h"
#include "cli/verification.h"

namespace cosmati::cli {

class ResultSample {
 public:
  // Draws places in the first output of `task`, first and last among them, and keeps what set 0 holds there.
  ResultSample(Task& task, GpuOperands const& operands, int ordinal, nets::Random& random);

  // What set 0 holds now, against what was kept: no element may lie farther away than `tolerance` times the
  // root of the kept ones' mean square. NaN is never near.
  Verdict compare(double tolerance) const;

 private:
  std::vector<double> values() const;

  GpuOperands const& operands_;
  int ordinal_;
  std::size_t slot_ = 0;
  Slot result_;
  std::vector<Index> places_;  // numbers of elements, last index fastest
  std::vector<double> kept_;
};

}  // namespace cosmati::cli
