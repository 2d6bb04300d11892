// cosmati plot: results of bench as an HTML page.
#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/networks/output_files.h"
#include "cli/options/options.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/plot/page.h"
#include "cli/verbs/commands.h"
#include "cosmati/ops/error.h"
#include "src/io/file.h"

namespace cosmati::cli {
namespace {

struct PlotRequest {
  std::vector<std::string> files;
  std::string out;
  bool json = false;
};

void plot_job(PlotRequest const& request) {
  if (request.files.empty())
    throw Error(ErrorCode::bad_request, "missing file of results, e.g. results.jsonl");
  if (request.out.empty())
    throw Error(ErrorCode::bad_request, "missing required option --out FILE, e.g. --out report.html");
  std::vector<InputFile> inputs;
  for (std::string const& file : request.files) inputs.push_back({"the argument", file});
  check_files({{"--out", request.out}}, inputs);
  PlotInput const input = read_plot_records(request.files);
  std::string const page = plot_page(input), skipped = skipped_text(input);
  io::write_atomically(request.out, page);
  long long lines = 0, above = 0;
  std::string first_above;
  for (PlotRecord const& record : input.records)
    if (record.above_ceiling && above++ == 0)
      first_above = fmt::format("{} {} on {}: {} GFLOP/s of {}", record.subject, record.problem,
                                record.device, in_short(record.gflops), in_short(record.peak_gflops));
  for (auto const& [reason, count] : input.skipped) lines += count;
  if (request.json)
    print_text(Record()
                   .add("verb", "plot")
                   .add("out", request.out)
                   .add("bytes", page.size())
                   .add("measurements", input.records.size())
                   .add("skipped", lines)
                   .add("replaced", input.replaced)
                   .add("above_ceiling", above)
                   .json());
  if (!request.json && !skipped.empty()) print_warning("skipped: " + skipped);
  if (!request.json)
    print_line(request.out + ": " + std::to_string(input.records.size()) + " measurements" +
               (input.replaced > 0 ? ", " + std::to_string(input.replaced) + " earlier ones omitted" : "") +
               ", " + in_bytes(static_cast<double>(page.size())));
  if (above > 0)
    throw Error(
        ErrorCode::wrong_result,
        fmt::format(
            "figures above the peak measured in the same run: {}, the first {}; either the time or the "
            "peak is wrong; measure again",
            above, first_above));
}

}  // namespace

void add_plot_command(CLI::App& program) {
  Command const command = Command(program).add_subcommand("plot", "Plot results of bench as an HTML page");
  command.footer(
      "Ratios to peers by suite and type, rooflines against measured peaks, and a filterable\n"
      "table; the page needs no network. Of repeated measurements, the last is shown.\nExample: "
      "cosmati plot results.jsonl --out report.html");
  auto const request = std::make_shared<PlotRequest>();
  Options(command)
      .several("results", request->files, "FILE ...", "files written by bench --json FILE")
      .group("Output")
      .text("--out", request->out, "FILE", "the report (required)")
      .flag("--json", request->json, "JSON Lines on stdout instead of text");
  command.callback([request] { plot_job(*request); });
}

}  // namespace cosmati::cli
