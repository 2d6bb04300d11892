// Data gradients with few channels, computing all phases at once.
#pragma once
#include "cosmati/conv/dgrad_small_c_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct DgradSmallCForm {
  ConvolutionForm form;         // all pixels of dx are m or n
  DgradSmallCArguments window;  // without pointers and group; `shape` is the recipe's
};
DgradSmallCForm dgrad_small_c_form(ConvolutionProblem const& problem, DgradSmallCShape const& shape);

// Limits the widths of stores and epilogue operands to runs of this many results.
void cap_widths(ConvolutionForm& form, int run);

struct DgradSmallCGrid {
  Index x = 0, y = 1, z = 1;
};
DgradSmallCGrid dgrad_small_c_grid(ConvolutionProblem const& problem, DgradSmallCShape const& shape);

std::string traits_of(DgradSmallCPolicy const& policy, KernelTypes const& types);
// The emulator's kernel, whose shape is in the arguments.
constexpr DgradSmallCShape emulated_dgrad_small_c_shape() {
  DgradSmallCShape shape;
  shape.threads_down = unfixed_dgrad_small_c_threads, shape.threads_across = 1;
  return shape;
}
program::Program dgrad_small_c_program(Plan<ConvolutionProblem> const& plan);

Offer<ConvolutionProblem> dgrad_small_c(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

}  // namespace cosmati::plan
