// The places between the strides of a data gradient, in one launch.
#pragma once
#include <string>
#include <vector>

#include "cosmati/conv/places_arguments.h"
#include "src/plan/conv/launch.h"

namespace cosmati::plan {

// One of the forms: its first block in the grid's x, and where its flags and partial sums begin, in bytes.
struct Place {
  std::size_t form = 0;
  int first_block = 0;
  std::size_t flags = 0, partials = 0;
};
struct Places {
  std::vector<Place> list;  // the longest sums first; none that is empty
  Index blocks = 0;
  std::size_t flag_bytes = 0, partial_bytes = 0;
};
Places places_of(std::vector<ConvolutionForm> const& forms, ConvolutionRecipe const& recipe);
// Blocks of a group's result in the grid's x.
Index blocks_of(ConvolutionForm const& form, ConvolutionRecipe const& recipe);

// Why the problem's forms do not share a launch; empty: they may.
std::string together_violation(ConvolutionProblem const& problem, std::vector<ConvolutionForm> const& forms);

// The plan's forms are computed by one launch.
bool run_together(ConvolutionRecipe const& recipe, std::vector<ConvolutionForm> const& forms);

// `schedule`, of the whole plan, for one place.
ScheduleArguments schedule_of(ScheduleArguments schedule, Place const& place);

}  // namespace cosmati::plan
