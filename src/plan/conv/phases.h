// All phases of a strided data gradient in one launch.
#pragma once
#include <string>
#include <vector>

#include "cosmati/conv/phases_arguments.h"
#include "src/plan/conv/launch.h"

namespace cosmati::plan {

// One of the forms: its first block in the grid's x, and the offsets of its flags and partial sums, in bytes.
struct Phase {
  std::size_t form = 0;
  int first_block = 0;
  std::size_t flags = 0, partials = 0;
};
struct Phases {
  std::vector<Phase> list;  // the longest sums first; without empty ones
  Index blocks = 0;
  std::size_t flag_bytes = 0, partial_bytes = 0;
};
Phases phases_of(std::vector<ConvolutionForm> const& forms, ConvolutionRecipe const& recipe);
// Returns the blocks of a group's result in the grid's x.
Index blocks_of(ConvolutionForm const& form, ConvolutionRecipe const& recipe);

// The reason why the problem's forms cannot share a launch; empty if they can.
std::string together_violation(ConvolutionProblem const& problem, std::vector<ConvolutionForm> const& forms);

// Whether one launch computes all forms of the plan.
bool run_together(ConvolutionRecipe const& recipe, std::vector<ConvolutionForm> const& forms);

// Restricts the plan's schedule to one phase.
ScheduleArguments schedule_of_phase(ScheduleArguments schedule, Phase const& phase);

}  // namespace cosmati::plan
