// Verifies one problem: runs it on random data, with poisoned outputs between guard bands, and compares with
// the reference in double precision.
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
  std::string complaint;      // the first thing that was wrong: "d (3, 4) is 1.5, not 1.25 (bound 0.01)"
  Index elements = 0;         // of all outputs
  double error = 0;           // the largest
  double share_of_bound = 0;  // the largest error / bound
};

struct Data {
  bool small_integers = false;
  // Bytes from a multiple of 64 to each array, rounded up to a multiple of the size of its elements.
  Index misalignment = 0;
  HardData hard = HardData::none;  // instead of normal numbers
};

bool is_count(Slot const& slot);  // labels, or places of maxima: no numbers that are computed with

// The bounds of verify_task, for results that are there: compares the outputs of some runs, each in the order
// of the task's slots, with the reference's. `inputs` has a tensor for each slot, empty for outputs.
// `added`: those of Task::added_errors.
void judge(Task& task, Backend backend, std::vector<Tensor> const& inputs,
           std::vector<std::vector<Tensor>> const& runs, Verdict& verdict,
           std::vector<Tensor> const& added = {}, HardData hard = HardData::none);

// For every element of every output, with reference r in double, magnitude M and n summed terms,
//   |output - r| <= (min(n + 4, 6*sqrt(n) + 4) + t) * u * M + u_out * |r| + half the smallest step of the
//   output's type,
// u the unit roundoff of the accumulator (2^-24, of sums in f16 2^-11, with f64 data 2^-53 twice: once for
// the reference, which is in double as well), u_out that of the output. The minimum is the worst case of n
// roundings for small n, and for large n six standard deviations of their random walk (Higham and Mary 2019);
// t is 64 where an exponential, a logarithm or a power is evaluated, else 0. With factors of 8-bit floats on
// a GPU comes 2^-12 / sqrt(max(1, n / 128)) * M: its tensor cores add 128 of their products with 14 bits
// (measured on an H200: a quarter of that). M is the reference's result for the absolute values of all inputs
// where the operation is linear, else the largest element of the reference's output and of the inputs. Where
// a kernel is further off, by transforms, its own bound for these data is added (Task::added_errors), and no
// result is exact. NaN is never within the bound. For hard data, M of an operation that is not linear is told
// element by element, by how far its results move when inputs do, and NaN and infinities are compared by
// docs/nonfinite.md (docs/decisions/0030-nonfinite-values.md). With small integers an operation whose results
// are exact must give exactly the rounded r.
//
// The task's descriptions are told the alignment that the arrays have.
Verdict verify_task(Task& task, Device const& device, PlanOptions const& options, Data const& data,
                    nets::Random& random);

}  // namespace cosmati::cli
