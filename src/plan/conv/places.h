// The places between the strides of a data gradient, in one launch.
#pragma once
#include <vector>

#include "cosmati/conv/places_arguments.h"
#include "src/plan/conv/launch.h"

namespace cosmati::plan {

// One of the forms: its blocks in the grid's x, and where its flags and partial sums begin, in bytes.
struct Place {
  std::size_t form = 0;
  int first_block = 0, blocks = 0;
  std::size_t flags = 0, partials = 0;
};
struct Places {
  std::vector<Place> list;  // the longest sums first; none that is empty
  int blocks = 0;
  std::size_t flag_bytes = 0, partial_bytes = 0;
};
// `product` has a policy and splits.
Places places_of(std::vector<ConvolutionForm> const& forms, GemmRecipe const& product);

// Why the forms do not share a launch whose parameters take `parameter_bytes` for each of them; empty: they
// do.
std::string together_violation(std::vector<ConvolutionForm> const& forms, std::size_t parameter_bytes);

// The plan's forms are computed by one launch.
bool run_together(ConvolutionRecipe const& recipe, std::vector<ConvolutionForm> const& forms);

// `schedule`, of the whole plan, for one place.
ScheduleArguments schedule_of(ScheduleArguments schedule, Place const& place);

}  // namespace cosmati::plan
