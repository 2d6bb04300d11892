// Random convolutions for `verify --kernel`: few of those drawn for all kernels have the filter, groups,
// strides or layout that these kernels require.
#pragma once
#include <string>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::cli {

// The values from which each parameter is drawn; channels and filters are per group.
struct ConvolutionDraws {
  std::string kernel;
  std::vector<std::string> directions = {"forward", "data", "filter", "transposed"};
  std::vector<std::string> layouts = {"nchw", "nhwc"};
  std::vector<Index> taps = {1, 2, 3, 4, 5}, strides = {1, 2}, dilations = {1, 1, 2};
  std::vector<Index> channels = {1, 3, 4, 8, 13, 16}, filters = {1, 5, 8, 12, 16}, groups = {1};
  std::vector<Index> images = {1, 2, 3};
};

// nullptr: this kernel supports most random problems, or none is requested.
ConvolutionDraws const* draws_for(std::string const& kernel);

}  // namespace cosmati::cli
