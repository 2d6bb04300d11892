// The facts about an operation's kernels that `compile`, `explain`, `tune` and `verify` use.
//
// Declared here for each operation, so that every translation unit that makes tasks uses the same
// definitions.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cosmati/ops/find.h"
#include "src/jit/compile.h"
#include "src/plan/operations.h"
#include "src/program/program.h"

namespace cosmati::cli {

// The alternatives for one problem on one GPU that cosmati tune measures.
class TuningChoices {
 public:
  virtual ~TuningChoices() = default;
  virtual std::vector<TuningCandidate> tuning_candidates() const = 0;  // the plan's own choice comes first
  virtual std::vector<TuningCandidate> neighbors(TuningLine const& center) const = 0;
  // `line` as a candidate; empty if it no longer fits the problem.
  virtual std::vector<TuningCandidate> tuning_candidate_of(TuningLine const& line) const = 0;
};

// The source from which the run-time compiler makes the chosen kernel.
struct Composition {
  jit::Source source;
  std::vector<jit::Source> passes;  // kernels that run before it
  std::string kernel;
  std::string policy;  // "medium 128x64x32"; empty for kernels without a GEMM policy
  std::string recipe;  // its parameters, as text
  int shared_bytes =
      0;  // dynamic shared memory of a launch, in addition to the static size in the machine code
};

// The composition of a program for the backend cuda.
Composition composition_of(program::Program const& program, Gpu const& gpu, std::string kernel,
                           std::string policy, std::string recipe);

// composition_of: empty if the plan's backend compiles nothing. tuning_choices_of: null for an operation that
// cannot be tuned. added_errors: for kernels whose error exceeds the rounding of their sums, the additional
// error before the epilogue, for each output of the operation.
#define COSMATI_DECLARE(Problem, name)                                                                 \
  std::optional<Composition> composition_of(Plan<Problem> const& plan);                                \
  std::unique_ptr<TuningChoices> tuning_choices_of(Problem const&, Device const&, PlanOptions const&); \
  std::vector<Tensor> added_errors_of(Plan<Problem> const& plan, Problem::Arguments const& arguments);
COSMATI_EACH_OPERATION(COSMATI_DECLARE)
#undef COSMATI_DECLARE

}  // namespace cosmati::cli
