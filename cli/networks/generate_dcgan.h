// The request of `cosmati generate dcgan`.
#pragma once
#include <string>
#include <vector>

#include "cli/options/options.h"

namespace cosmati::cli {

struct GenerateRequest {
  std::string weights, input, output, image, animation, timeline, save_weights;
  std::string output_type = "f32";
  std::string method = "auto";  // one, or four separated by commas (one per hidden layer)
  std::string measure;          // "host" or "device"; no files are written
  long long count = not_given;
  long long batch = not_given;  // default: 64; on GPUs 1/16 of all images, 128 to 1024
  long long gpus = 0;
  long long walk = not_given;               // frames of a walk through latent space
  long long walk_stops = not_given;         // default: 8, or the vectors of `input`
  long long frames_per_second = not_given;  // frame rate of the animation; default: 20
  bool explain = false;
  Common common;
};

void generate_dcgan(GenerateRequest const& request);

}  // namespace cosmati::cli
