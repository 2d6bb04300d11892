// A sample of a result in device memory, for comparison with a peer's.
#pragma once
#include <string>
#include <vector>

#include "cli/data/gpu_operands.h"
#include "cli/verify/verification.h"

namespace cosmati::cli {

// How far a peer's result may lie from ours, in parts of the root of ours' mean square: rounding errors of
// either side for factors of this type, those of Winograd's transforms in narrow types among them; an f32
// that was cut to TF32 is farther away than f32 may be.
double peer_tolerance(DataType factors);

// Elements of a result of that name, `places` their numbers: no one of `theirs` may lie farther from ours
// than `tolerance` times the root of ours' mean square. NaN is never near.
Verdict compare_with_ours(std::string const& name, std::vector<Index> const& places,
                          std::vector<double> const& ours, std::vector<double> const& theirs,
                          double tolerance);

class ResultSample {
 public:
  // Draws places in the first output of `task`, first and last among them, and keeps what set 0 holds there.
  ResultSample(Task& task, GpuOperands const& operands, int ordinal, nets::Random& random);

  // What set 0 holds now, against what was kept.
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
