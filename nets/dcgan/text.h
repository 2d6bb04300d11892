// The report's text files: latent vectors in, images out.
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

// `N` and a newline, then for each image its elements as "%.4f " and a newline: the bytes that C's printf
// gives. images (count, elements). The text comes in pieces, as `threads` threads have made them.
std::vector<std::string> images_to_text(float const* images, Index count, Index elements, int threads);
// The same without `N`.
std::vector<std::string> image_lines(float const* images, Index count, Index elements, int threads);

}  // namespace cosmati::dcgan
