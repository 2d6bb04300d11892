// Reads measurements from JSON Lines.
#include "cli/plot/records.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cosmati/ops/error.h"
#include "src/io/file.h"
#include "src/io/json_lines.h"

namespace cosmati::cli {
namespace {

using Json = nlohmann::json;

// A value of the wrong JSON type counts as absent: a record is not dropped because of a field that the report
// can do without.
std::string text_of(Json const& line, char const* key) {
  auto const found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Values beyond these limits are no measurements, and their products would overflow.
double positive_number(Json const& line, char const* key) {
  auto const found = line.find(key);
  double const number = found != line.end() && found->is_number() ? found->get<double>() : 0;
  return number > 1e-60 && number < 1e60 ? number : 0;
}

bool is(Json const& line, char const* key, bool value) {
  auto const found = line.find(key);
  return found != line.end() && found->is_boolean() && found->get<bool>() == value;
}

// A time in the distant past or future would overflow the calendar functions.
long long time_of(Json const& line) {
  double const time = positive_number(line, "time");
  return time < 1e11 ? static_cast<long long>(time) : 0;
}

// Empty if the line is a measurement that can be shown.
std::string reason_to_skip(Json const& line) {
  if (!line.is_object()) return "that are not records";
  if (text_of(line, "verb") != "bench") return "of verbs other than bench";
  if (text_of(line, "subject").empty() || text_of(line, "problem").empty() || text_of(line, "type").empty())
    return "without subject, problem or type";
  if (positive_number(line, "median_seconds") == 0 || positive_number(line, "gflops") == 0)
    return "without a time or a rate";
  return {};
}

std::string state_of(Json const& line) {
  std::string state = is(line, "verified", true)    ? "verified"
                      : is(line, "verified", false) ? "FAILED"
                                                    : "not verified";
  if (is(line, "settled", false)) state += ", unsettled";
  if (is(line, "steady", false)) state += ", slowing";
  if (is(line, "throttled", true)) {
    double const share = positive_number(line, "clock_share");
    state += share > 0 ? ", throttled to " + in_short(std::round(100 * share)) + '%' : ", throttled";
  }
  if (is(line, "peer_verified", false)) state += ", the peer's result differs";
  return state;
}

void read_ratio(Json const& line, PlotRecord& record, double operations) {
  record.peer = text_of(line, "peer");
  record.peer_version = text_of(line, "peer_version");
  record.refusal = text_of(line, "peer_refusal");
  record.ratio = positive_number(line, "ratio");
  record.ratio_low = positive_number(line, "ratio_low");
  record.ratio_high = positive_number(line, "ratio_high");
  // Records of `make figures` contain only the peer's time; ours follows from the rate.
  if (record.ratio == 0 && !record.peer.empty() && operations > 0)
    record.ratio = positive_number(line, "peer_seconds") * record.gflops * 1e9 / operations;
  if (record.ratio_low == 0 || record.ratio_high < record.ratio_low)
    record.ratio_low = record.ratio_high = record.ratio;
}

PlotRecord record_of(Json const& line, std::string const& file) {
  PlotRecord record;
  record.suite = text_of(line, "suite");
  if (record.suite.empty()) record.suite = std::filesystem::path(file).stem().string();
  record.subject = text_of(line, "subject");
  record.problem = text_of(line, "problem");
  record.type = text_of(line, "type");
  record.sums = text_of(line, "accumulator");
  record.kernel = text_of(line, "kernel");
  record.policy = text_of(line, "policy");
  record.device = text_of(line, "gpu");
  if (record.device.empty()) record.device = text_of(line, "machine");
  if (record.device.empty()) record.device = "unknown machine";
  record.commit = text_of(line, "commit");
  record.state = state_of(line);
  record.wrong = is(line, "verified", false) || is(line, "peer_verified", false);
  record.seconds = positive_number(line, "median_seconds");
  record.gflops = positive_number(line, "gflops");
  double const operations = positive_number(line, "operations"), bytes = positive_number(line, "bytes");
  record.intensity = bytes > 0 ? operations / bytes : 0;
  record.peak = text_of(line, "peak");
  record.peak_gflops = positive_number(line, "peak_gflops");
  record.peak_burst_gflops = positive_number(line, "peak_burst_gflops");
  record.copy_bytes = positive_number(line, "copy_bytes_per_second");
  record.share_of_peak = positive_number(line, "share_of_peak");
  record.share_of_copy = positive_number(line, "share_of_copy");
  record.time = time_of(line);
  read_ratio(line, record, operations);
  // A matrix product performs every operation; a convolution may skip those in the padding, or use a
  // transform. So only a product's rate must be below the peak.
  double const ceiling = std::max(record.peak_gflops, record.peak_burst_gflops);
  record.above_ceiling = record.subject == "gemm" && ceiling > 0 && record.gflops > 1.05 * ceiling;
  if (record.above_ceiling) {
    record.wrong = true;
    record.state += ", ABOVE ITS CEILING";
  }
  return record;
}

// Two records are repetitions of one measurement if all of this is equal.
auto identity_of(PlotRecord const& record) {
  return std::tuple(record.suite, record.subject, record.problem, record.type, record.sums, record.device,
                    record.kernel, record.peer);
}

void keep_last_of_equals(PlotInput& input) {
  std::map<decltype(identity_of(input.records.front())), std::size_t> places;
  std::vector<PlotRecord> kept;
  for (PlotRecord& record : input.records) {
    auto const [place, is_new] = places.emplace(identity_of(record), kept.size());
    if (is_new) {
      kept.push_back(std::move(record));
      continue;
    }
    ++input.replaced;
    if (record.time >= kept[place->second].time) kept[place->second] = std::move(record);
  }
  input.records = std::move(kept);
}

}  // namespace

PlotInput read_plot_records(std::vector<std::string> const& files) {
  PlotInput input;
  input.files = files;
  for (std::string const& file : files)
    io::parse_json_lines(io::read_file(file), file, [&](std::size_t, Json&& line) {
      std::string const reason = reason_to_skip(line);
      if (reason.empty())
        input.records.push_back(record_of(line, file));
      else
        ++input.skipped[reason];
    });
  if (input.records.empty()) {
    std::string const skipped = skipped_text(input);
    throw Error(ErrorCode::bad_file, join(files, ", ") + ": contains no measurements" +
                                         (skipped.empty() ? "" : ", only " + skipped) +
                                         "; cosmati bench SUBJECT --json FILE writes them");
  }
  keep_last_of_equals(input);
  return input;
}

std::string skipped_text(PlotInput const& input) {
  std::vector<std::string> parts;
  for (auto const& [reason, count] : input.skipped)
    parts.push_back(std::to_string(count) + (count == 1 ? " line " : " lines ") + reason);
  return join(parts, ", ");
}

}  // namespace cosmati::cli
