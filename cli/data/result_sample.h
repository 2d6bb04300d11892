// A sample of a result in device memory, to be compared with a peer's.
#pragma once
#include <string>
#include <vector>

#include "cli/data/gpu_operands.h"
#include "cli/verify/verification.h"

namespace cosmati::cli {

// The permitted distance of a peer's result from ours, relative to the root mean square of ours. It covers
// rounding errors of both sides for factors of this type, including those of Winograd transforms in narrow
// types; f32 factors rounded to TF32 exceed the tolerance of f32.
double peer_tolerance(DataType factors);

// Compares elements `places` of the named result: no element of `theirs` may differ from ours by more than
// `tolerance` times the root mean square of ours. NaN is never close.
Verdict compare_with_ours(std::string const& name, std::vector<Index> const& places,
                          std::vector<double> const& ours, std::vector<double> const& theirs,
                          double tolerance);

class ResultSample {
 public:
  // Chooses random elements of the first output of `task`, including the first and the last, and keeps their
  // values in set 0.
  ResultSample(Task& task, GpuOperands const& operands, int ordinal, nets::Random& random);

  // Compares the current contents of set 0 with the values kept.
  Verdict compare(double tolerance) const;

 private:
  std::vector<double> values() const;

  GpuOperands const& operands_;
  int ordinal_;
  std::size_t slot_ = 0;
  Slot result_;
  std::vector<Index> places_;  // linear indices of elements, last dimension fastest
  std::vector<double> kept_;
};

}  // namespace cosmati::cli
