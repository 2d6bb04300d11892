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
  Index count = 0, resumed = 0;  // `resumed` images come from an earlier run
  // Seconds: preparing plans, kernels and buffers; generating images from latent vectors, both in host
  // memory; writing files, mostly concurrent with generating; total from latent vectors to complete files.
  double preparing = 0, generating = 0, writing = 0, total = 0;
  Index devices = 1, batch = 0;
  int ranks = 1, threads = 1;
  std::string backend, device, type, files;
};
void print_report(GenerateReport const& report, bool json);

// One lane for each stage of each device of this process, and one for the files.
std::vector<Lane> lanes_of(std::vector<std::vector<dcgan::DrawnChunk>> const& drawn,
                           std::vector<dcgan::Writer::Span> const& written);
void write_timeline(std::string const& path, std::vector<Lane> const& lanes, GenerateReport const& report);

void print_plan(std::vector<dcgan::PlannedPart> const& parts, Index batch, bool json);

}  // namespace cosmati::cli
