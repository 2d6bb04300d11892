// The report's text format for latent vectors and images.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::dcgan {

// `N`, then N x 100 numbers, all separated by white space (line ends of any kind). Throws Error(bad_file)
// naming line and column of what is no number, or how many numbers there are instead of how many there should
// be.
std::vector<float> read_latents(std::string const& path);
std::vector<float> parse_latents(std::string_view text, std::string const& name);

// Each number as "%.4f ": the bytes that C's printf gives. text_bytes() tells how many; to_text() writes
// them, and may touch text_slack bytes behind them, and returns their end.
inline constexpr Index text_slack = 8;
Index text_bytes(float const* numbers, Index count);
char* to_text(float const* numbers, Index count, char* to);

}  // namespace cosmati::dcgan
