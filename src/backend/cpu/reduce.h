// Reduction over any axes, in double, on several threads, for reduce problems and bias gradients.
#pragma once
#include "cosmati/ops/elementwise.h"
#include "src/backend/cpu/loop_nest.h"

namespace cosmati::cpu {

// The order of the sums depends only on the problem and the number of threads.
class Reduction {
 public:
  Reduction(ReduceProblem const& problem, int threads);
  std::size_t workspace_bytes() const;
  void run(void const* x, void* y, std::byte* workspace) const;

 private:
  // Computes `width` adjacent results for the part [first, last) of the reduced elements.
  void reduce_group(void const* x, Index group, Index first, Index last, double* results) const;
  void store_group(double const* results, void* y, Index group) const;
  Index width_of(Index group) const;

  ReduceProblem problem_;
  LoopNest<2> kept_;     // x, y
  LoopNest<1> reduced_;  // x
  bool inner_reduced_;   // elements that are contiguous belong to the same result
  Index width_;          // results per group
  Index groups_;
  int threads_;
  bool split_;  // threads share the reduced elements, not the results
};

}  // namespace cosmati::cpu
