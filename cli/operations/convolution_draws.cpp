// The table of what is drawn for each kernel.
#include "cli/operations/convolution_draws.h"

#include <algorithm>

namespace cosmati::cli {

ConvolutionDraws const* draws_for(std::string const& kernel) {
  using Numbers = std::vector<Index>;
  using Words = std::vector<std::string>;
  Words const gradients_too = {"forward", "data", "filter"};
  Numbers const one = {1}, units = {8, 16, 24, 32}, any = {8, 16, 24, 29, 32, 67}, many = {4, 7, 20, 32};
  static std::vector<ConvolutionDraws> const all = {
      {.kernel = "gemm", .taps = one, .strides = one},
      {.kernel = "bias_gradient", .directions = {"bias"}},
      {.kernel = "winograd",
       .directions = gradients_too,
       .taps = {2, 3, 5},
       .strides = one,
       .dilations = one},
      {.kernel = "chwn16",
       .directions = gradients_too,
       .layouts = {"chwn"},
       .strides = one,
       .dilations = one,
       .images = {16}},
      {.kernel = "depthwise", .channels = one, .filters = one, .groups = many},
      {.kernel = "depthwise_rows",
       .directions = gradients_too,
       .taps = {3, 5, 7},
       .channels = one,
       .filters = one,
       .groups = many},
      {.kernel = "grouped",
       .directions = gradients_too,
       .layouts = {"nhwc"},
       .taps = {1, 3, 5},
       .channels = {4, 8, 16, 32},
       .filters = {8, 16, 32},
       .groups = {2, 3, 4}},
      {.kernel = "group_windows",
       .directions = {"forward", "data"},
       .layouts = {"nhwc"},
       .taps = {1, 2, 3, 5},
       .strides = {1, 2},
       .channels = {16, 32, 48, 64},
       .filters = {16, 32, 48, 64},
       .groups = {2, 3, 5, 8}},
      {.kernel = "warp_specialized", .layouts = {"nhwc"}, .channels = any, .filters = any},
      {.kernel = "channels_last", .layouts = {"nchw"}, .channels = units, .filters = units},
      {.kernel = "image_products",
       .directions = {"filter"},
       .layouts = {"nchw"},
       .taps = one,
       .strides = one,
       .channels = any,
       .filters = any},
      {.kernel = "wgrad_taps",
       .directions = {"filter"},
       .layouts = {"nhwc"},
       .taps = {3},
       .strides = {1, 2},
       .dilations = one,
       .channels = {4, 8, 24, 64, 128},
       .filters = {8, 16, 40, 64},
       .groups = {1, 2, 6}},
      {.kernel = "dgrad_small_c",
       .directions = {"data", "transposed"},
       .taps = {2, 3, 4, 5},
       .strides = {2},
       .dilations = one,
       .channels = {1, 3, 8}},
      {.kernel = "dgrad_phases",
       .directions = {"data", "transposed"},
       .layouts = {"nhwc"},
       .taps = {2, 3, 5, 7},
       .strides = {2},
       .dilations = one,
       .channels = any,
       .filters = any},
      {.kernel = "fprop_small_c",
       .directions = {"forward"},
       .layouts = {"nhwc"},
       .taps = {1, 2, 3, 5, 7},
       .dilations = one,
       .channels = {1, 2, 3, 4, 8, 16},
       .filters = any},
      {.kernel = "wgrad_small_c",
       .directions = {"filter"},
       .layouts = {"nhwc"},
       .taps = {1, 2, 3, 5, 7},
       .dilations = one,
       .channels = {1, 2, 3, 4, 8},
       .filters = units}};
  auto const found = std::ranges::find(all, kernel, &ConvolutionDraws::kernel);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace cosmati::cli
