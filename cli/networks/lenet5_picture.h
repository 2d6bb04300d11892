// The picture of a training run: sample images with predictions, and the training curve.
#pragma once
#include <string>
#include <vector>

#include "nets/lenet5/training.h"
#include "src/io/image/image.h"

namespace cosmati::cli {

// Shows the first images of `data` with predictions, green if correct, red with the true label in parentheses
// if wrong; below them training and test accuracy by epoch.
io::Image lenet5_picture(nets::Dataset const& data, std::vector<int> const& predictions,
                         std::vector<std::string> const& classes,
                         std::vector<lenet5::EpochReport> const& history);

}  // namespace cosmati::cli
