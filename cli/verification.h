// One problem verified: run on random data between guard bands into poisoned outputs, and compared with the
// reference in double precision.
#pragma once
#include <string>

#include "cli/random_data.h"
#include "cli/task.h"

namespace cosmati::cli {

struct Verdict {
  std::string kernel;
  bool exact = false;  // every element had to be the correctly rounded one
  bool correct = true;
  std::string complaint;      // the first thing that was wrong: "d (3, 4) is 1.5, not 1.25 (bound 0.01)"
  Index elements = 0;         // of all outputs
  double error = 0;           // the largest
  double share_of_bound = 0;  // the largest error / bound
};

// For every element of every output, with reference r in double, magnitude M and n summed terms,
//   |output - r| <= (min(n + 4, 6*sqrt(n) + 4) + t) * u * M + u_out * |r| + half the smallest step of the
//   output's type,
// u the unit roundoff of the accumulator (2^-24, with f64 data 2^-53), u_out that of the output. The minimum
// is the worst case of n roundings for small n, and for large n six standard deviations of their random walk
// (Higham and Mary 2019); t is 64 where an exponential, a logarithm or a power is evaluated, else 0. M is the
// reference's result for the absolute values of all inputs where the operation is linear, else the largest
// element of the reference's output and of the inputs. NaN is never within the bound. With small integers an
// operation whose results are exact must give exactly the rounded r.
Verdict verify_task(Task& task, Device const& device, PlanOptions const& options, bool small_integers,
                    nets::Random& random);

}  // namespace cosmati::cli
