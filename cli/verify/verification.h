// Verifies one problem: runs it on random data with poisoned outputs between guard bands, and compares with
// the reference in f64.
#pragma once
#include <string>
#include <vector>

#include "cli/data/hard_data.h"
#include "cli/data/random_data.h"
#include "cli/operations/task.h"

namespace cosmati::cli {

struct Verdict {
  std::string kernel;
  bool exact = false;  // every element must be correctly rounded
  bool correct = true;
  std::string complaint;      // the first error: "d (3, 4) is 1.5, not 1.25 (bound 0.01)"
  Index elements = 0;         // number of elements of all outputs
  double error = 0;           // largest error
  double share_of_bound = 0;  // largest error / bound
};

struct Data {
  bool small_integers = false;
  // Bytes from a multiple of 64 to each array, rounded up to a multiple of its element size.
  Index misalignment = 0;
  HardData hard = HardData::none;  // used instead of normally distributed numbers
};

// Whether a check leaves the tensor and its type as they are: labels, indices of maxima, the numbers of an
// optimizer's step and its loss scaling.
bool keeps_type(Slot const& slot);

// Applies the bounds of verify_task to existing results: compares the outputs of several runs, each in the
// order of the task's slots, with the reference. `inputs` has a tensor for each slot, empty for outputs.
// `added` are the results of Task::added_errors; with Notes::bounds they replace the term with M below.
void judge(Task& task, Backend backend, std::vector<Tensor> const& inputs,
           std::vector<std::vector<Tensor>> const& runs, Verdict& verdict,
           std::vector<Tensor> const& added = {}, HardData hard = HardData::none);

// For every element of every output, with reference r in f64, magnitude M and n summed terms, requires
// |output - r| <= (min(n + 4, 6*sqrt(n) + 4) + t) * u * M + u_out * |r| + half the smallest step of the
// output's type, where u is the unit roundoff of the accumulator (2^-24; 2^-11 for sums in f16; twice 2^-53
// for f64 data, since the reference has the same precision) and u_out that of the output. The minimum is the
// worst case of n rounding errors for small n, and six standard deviations of their random walk for large n
// (Higham and Mary 2019); t is 64 if an exponential, a logarithm or a power is evaluated, else 0. For factors
// of 8-bit floats on a GPU, 2^-11 / sqrt(max(1, n / 128)) * M is added: its tensor cores add 128 products
// with 14 bits (measured on an H200: a quarter of that; for hard data, where one term may exceed all others,
// 2^-9 * M). M is the reference's result for the absolute values
// of all inputs if the operation is linear, else the largest element of the reference's output and of the
// inputs, but at least the smallest normal number of the accumulator. If a kernel has additional errors, from
// transforms, its own bound for these data is added (Task::added_errors), and no result is required to be
// exact. NaN is never within the bound. For hard data, M of a nonlinear operation is determined for each
// element from how far its results move when the inputs do, and NaN and infinities are compared by the rules
// of docs/nonfinite.md (docs/decisions/0030-nonfinite-values.md). With small integers, an operation with
// exact results must give exactly the rounded r.
//
// The task's descriptions are changed to the alignment that the arrays have.
Verdict verify_task(Task& task, Device const& device, PlanOptions const& options, Data const& data,
                    nets::Random& random);

}  // namespace cosmati::cli
