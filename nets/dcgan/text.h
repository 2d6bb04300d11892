// The report's text format for latent vectors and images.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

// Format: `N`, then N x 100 numbers, separated by white space (any line ends). Throws Error(bad_file) naming
// the line and column of an invalid number, or the actual and expected numbers of values.
std::vector<float> read_latents(std::string const& path);
std::vector<float> parse_latents(std::string_view text, std::string const& name);

// Each number as "%.4f ", identical to C's printf. text_bytes() returns their length; to_text() writes them,
// may modify text_slack bytes after them, and returns their end.
inline constexpr Index text_slack = 8;
Index text_bytes(float const* numbers, Index count);
char* to_text(float const* numbers, Index count, char* to);

}  // namespace cosmati::dcgan
