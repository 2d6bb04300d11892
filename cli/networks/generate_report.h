// What `cosmati generate dcgan` says: how it would draw, and how fast it drew.
#pragma once
#include <string>
#include <vector>

#include "nets/dcgan/generator.h"

namespace cosmati::cli {

struct GenerateReport {
  Index count = 0, resumed = 0;  // resumed: of an earlier run
  // Seconds: plans, kernels and buffers; from latent vectors to images, both in host memory; at work on
  // files, most of it meanwhile; from latent vectors to complete files.
  double preparing = 0, generating = 0, writing = 0, total = 0;
  Index devices = 1, batch = 0;
  int ranks = 1, threads = 1;
  std::string backend, device, type, files;
};
void print_report(GenerateReport const& report, bool json);

void print_plan(std::vector<dcgan::PlannedPart> const& parts, Index batch, bool json);

}  // namespace cosmati::cli
