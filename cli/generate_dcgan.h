// What `cosmati generate dcgan` was asked for.
#pragma once
#include <string>

#include "cli/options.h"

namespace cosmati::cli {

struct GenerateRequest {
  std::string weights, input, output, image, save_weights;
  long long count = -1, batch = 64, gpus = 0;
  Common common;
};

void generate_dcgan(GenerateRequest const& request);

}  // namespace cosmati::cli
