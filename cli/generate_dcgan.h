// What `cosmati generate dcgan` was asked for.
#pragma once
#include <string>
#include <vector>

#include "cli/options.h"

namespace cosmati::cli {

struct GenerateRequest {
  std::string weights, input, output, image, animation, timeline, save_weights;
  std::string output_type = "f32";
  std::string method = "auto";  // one, or four separated by commas
  std::string measure;          // host or device: no files
  long long count = -1;
  long long batch = -1;  // -1: 64, on GPUs 1024
  long long gpus = 0;
  long long walk = -1;               // frames of a walk
  long long walk_stops = -1;         // -1: 8, or the vectors of `input`
  long long frames_per_second = -1;  // of the animation; -1: 20
  bool explain = false;
  Common common;
};

void generate_dcgan(GenerateRequest const& request);

}  // namespace cosmati::cli
