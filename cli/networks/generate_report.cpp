// A sentence or a line of JSON, a timeline, and a table of layers.
#include "cli/networks/generate_report.h"

#include <fmt/format.h>

#include "cli/output/record.h"
#include "cli/output/table.h"
#include "src/io/file.h"

namespace cosmati::cli {

void print_report(GenerateReport const& report, bool json) {
  auto const drawn = static_cast<double>(report.count - report.resumed);
  double const rate = report.generating > 0 ? drawn / report.generating : 0;
  if (json) {
    print_text(Record()
                   .add("images", report.count)
                   .add("resumed_images", report.resumed)
                   .add("seconds", report.generating)
                   .add("images_per_second", rate)
                   .add("writing_seconds", report.writing)
                   .add("seconds_with_files", report.total)
                   .add("preparing_seconds", report.preparing)
                   .add("backend", report.backend)
                   .add("device", report.device)
                   .add("devices", report.devices)
                   .add("ranks", report.ranks)
                   .add("type", report.type)
                   .add("batch", report.batch)
                   .add("threads", report.threads)
                   .json());
    return;
  }
  std::string const earlier =
      report.resumed > 0 ? fmt::format(" ({} of them from an earlier run)", report.resumed) : std::string();
  std::string const where =
      report.devices > 1 ? fmt::format(" on {} devices", report.devices) : std::string();
  std::string const files =
      report.files.empty() ? std::string()
                           : fmt::format(", with files in {}: {}", in_seconds(report.total), report.files);
  print_line(fmt::format("{} images{}{} in {} ({:.0f} images/s){}", report.count, earlier, where,
                         in_seconds(report.generating), rate, files));
}

std::vector<Lane> lanes_of(std::vector<std::vector<dcgan::DrawnChunk>> const& drawn,
                           std::vector<dcgan::Writer::Span> const& written) {
  std::vector<Lane> lanes;
  for (std::size_t device = 0; device < drawn.size(); ++device) {
    std::string const place = fmt::format("device {}", device);
    Lane upload{place, "upload", {}}, compute{place, "compute", {}}, download{place, "download", {}};
    for (dcgan::DrawnChunk const& one : drawn[device]) {
      upload.spans.push_back({one.chunk.number, one.times.upload_begin, one.times.upload_end});
      compute.spans.push_back({one.chunk.number, one.times.compute_begin, one.times.compute_end});
      download.spans.push_back({one.chunk.number, one.times.download_begin, one.times.download_end});
    }
    lanes.insert(lanes.end(), {upload, compute, download});
  }
  Lane files{"host", "files", {}};
  for (dcgan::Writer::Span const& span : written) files.spans.push_back({span.chunk, span.begin, span.end});
  if (!files.spans.empty()) lanes.push_back(files);
  return lanes;
}

void write_timeline(std::string const& path, std::vector<Lane> const& lanes, GenerateReport const& report) {
  io::write_atomically(
      path, path.ends_with(".json")
                ? timeline_json(lanes)
                : timeline_svg(lanes, fmt::format("{} images of 64x64 in chunks of {}, {}, {}", report.count,
                                                  report.batch, report.type, report.device)));
}

void print_plan(std::vector<dcgan::PlannedPart> const& parts, Index batch, bool json) {
  Table table({"layer", "images", "method", "kernel", "predicted", "TFLOP/s", "how"});
  double seconds = 0;
  bool predicted = true;
  for (dcgan::PlannedPart const& part : parts) {
    predicted = predicted && part.predicted_seconds > 0;
    seconds += part.predicted_seconds;
    bool const product = part.name == "proj";
    char const* const method = product ? "product" : dcgan::name_of(part.method);
    double const rate = part.predicted_seconds > 0 ? part.useful_flops / part.predicted_seconds * 1e-12 : 0;
    if (json)
      print_text(
          Record()
              .add("layer", part.name)
              .add("images", part.problem)
              .add("method", method)
              .add("kernel", part.kernel)
              .add("recipe", part.recipe)
              .add("predicted_seconds", part.predicted_seconds > 0 ? Value(part.predicted_seconds) : Value())
              .add("useful_flops", part.useful_flops)
              .json());
    table.add({part.name, part.problem, method, part.kernel,
               part.predicted_seconds > 0 ? in_seconds(part.predicted_seconds) : "",
               rate > 0 ? fmt::format("{:.1f}", rate) : "", part.recipe});
  }
  if (json) return;
  table.print();
  if (predicted)
    print_line(fmt::format("{} images in {}: {:.0f} images/s predicted", batch, in_seconds(seconds),
                           static_cast<double>(batch) / seconds));
}

}  // namespace cosmati::cli
