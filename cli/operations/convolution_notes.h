// Labels and operation counts of convolutions.
#pragma once
#include <string>

#include "cli/operations/task.h"
#include "cosmati/ops/convolution.h"

namespace cosmati::cli {

std::string pair_text(Index rows, Index columns);  // "2,3"

Notes convolution_notes(ConvolutionProblem const& problem, std::string const& direction,
                        std::string const& format, std::string const& expression);

}  // namespace cosmati::cli
