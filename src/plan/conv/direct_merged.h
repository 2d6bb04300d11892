// Data gradients with few channels, all places between the strides at once.
#pragma once
#include "cosmati/conv/merged_arguments.h"
#include "src/plan/conv/form.h"

namespace cosmati::plan {

struct MergedForm {
  ConvolutionForm form;    // m or n: all pixels of dx
  MergedArguments window;  // without pointers and group; `shape` is the recipe's
};
MergedForm merged_form(ConvolutionProblem const& problem, MergedShape const& shape);

struct MergedGrid {
  Index x = 0, y = 1, z = 1;
};
MergedGrid merged_grid(ConvolutionProblem const& problem, MergedShape const& shape);

Offer<ConvolutionProblem> direct_merged(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

}  // namespace cosmati::plan
