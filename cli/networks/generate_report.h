// Output of `cosmati generate dcgan`: the plan, and the speed.
#pragma once
#include <string>
#include <vector>

#include "cli/output/timeline.h"
#include "nets/dcgan/generator.h"
#include "nets/dcgan/workers.h"
#include "nets/dcgan/writer.h"

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

// What the devices of this process did, and what was done to files.
std::vector<Lane> lanes_of(std::vector<std::vector<dcgan::DrawnChunk>> const& drawn,
                           std::vector<dcgan::Writer::Span> const& written);
void write_timeline(std::string const& path, std::vector<Lane> const& lanes, GenerateReport const& report);

void print_plan(std::vector<dcgan::PlannedPart> const& parts, Index batch, bool json);

}  // namespace cosmati::cli
