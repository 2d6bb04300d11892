// The picture that a training leaves: sample images with the network's answers, and how it learned.
#pragma once
#include <string>
#include <vector>

#include "nets/lenet5/training.h"
#include "src/io/image.h"

namespace cosmati::cli {

// The first images of `data`, the answer below each: green where it is right, red with the truth in brackets
// where it is wrong; below them training and test accuracy against the epoch.
io::Image lenet5_picture(nets::Dataset const& data, std::vector<int> const& predictions,
                         std::vector<std::string> const& classes,
                         std::vector<lenet5::EpochReport> const& history);

}  // namespace cosmati::cli
