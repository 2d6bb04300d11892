// What `compile`, `explain`, `tune` and `verify` know of an operation's kernels.
//
// Declared for each operation, so that a task means the same in every file that makes one.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cosmati/ops/find.h"
#include "src/jit/compile.h"
#include "src/plan/operations.h"

namespace cosmati::cli {

// What there is to choose for one problem on one GPU, as cosmati tune measures it.
class TuningChoices {
 public:
  virtual ~TuningChoices() = default;
  virtual std::vector<TuningContender> contenders() const = 0;  // the plan's own is the first
  virtual std::vector<TuningContender> neighbours(TuningLine const& centre) const = 0;
  // `line` as a contender; nothing if it does not fit any longer.
  virtual std::vector<TuningContender> contender_of(TuningLine const& line) const = 0;
};

// What the run-time compiler makes the chosen kernel of.
struct Composition {
  jit::Source source;
  std::vector<jit::Source> passes;  // of kernels that run before it
  std::string kernel;
  std::string recipe;    // its policy, for people
  int shared_bytes = 0;  // that a launch asks for, beside those in the machine code
};

// composition_of: nothing where the plan's backend compiles nothing. tuning_choices_of: null for an operation
// that cannot be tuned. added_errors: for kernels whose results are further off than the rounding of their
// sums explains, by how much, before the epilogue, for each output of the operation.
#define COSMATI_DECLARE(Problem, name)                                                                 \
  std::optional<Composition> composition_of(Plan<Problem> const& plan);                                \
  std::unique_ptr<TuningChoices> tuning_choices_of(Problem const&, Device const&, PlanOptions const&); \
  std::vector<Tensor> added_errors_of(Plan<Problem> const& plan, Problem::Arguments const& arguments);
COSMATI_EACH_OPERATION(COSMATI_DECLARE)
#undef COSMATI_DECLARE

}  // namespace cosmati::cli
