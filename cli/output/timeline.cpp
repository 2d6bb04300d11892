// Draws bars on lanes.
#include "cli/output/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/output/table.h"
#include "cli/plot/svg.h"

namespace cosmati::cli {
namespace {

constexpr Index max_chunks = 24;  // in a picture
constexpr double left = 150, width = 760, right = 70, top = 44, row = 26, bar = 18, bottom = 40;

constexpr char const* style =
    "text{font:12px system-ui,sans-serif;fill:#1c1c1a}.head{font-size:14px;font-weight:600}"
    ".quiet{fill:#5c5c57}.number{font-size:10px;fill:#fff}.rule{stroke:#dcdcd6}.paper{fill:#f4f4f1}"
    "g.odd{opacity:.72}.upload{fill:#8a4fa3}.compute{fill:#2f6fb3}.download{fill:#157a8c}"
    ".files{fill:#2a7a63}";

struct Interval {
  double begin = std::numeric_limits<double>::max(), end = std::numeric_limits<double>::lowest();
};

Interval interval_of(std::vector<Lane> const& lanes, Index chunks) {
  Interval all;
  for (Lane const& lane : lanes)
    for (Span const& span : lane.spans)
      if (span.chunk < chunks) all = {std::min(all.begin, span.begin), std::max(all.end, span.end)};
  return all.begin < all.end ? all : Interval{0, 1};
}

// The distance between ticks: 1, 2 or 5 times a power of ten, about eight ticks in `seconds`.
double tick_of(double seconds) {
  double const raw = seconds / 8, power = std::pow(10, std::floor(std::log10(raw)));
  for (double const factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw) return factor * power;
  return 10 * power;
}

void draw_axis(Svg& svg, double seconds, double height) {
  double const tick = tick_of(seconds);
  for (double t = 0; t <= seconds * 1.0001; t += tick) {
    double const x = left + width * t / seconds;
    svg.line(x, top - 6, x, height - bottom, "rule");
    svg.text(x, height - bottom + 16, "middle", t == 0 ? "0" : in_seconds(t), "quiet");
  }
}

void draw_lane(Svg& svg, Lane const& lane, Index chunks, Interval const& shown, double y) {
  double const scale = width / (shown.end - shown.begin);
  double busy = 0;
  svg.text(left - 10, y + 13, "end", lane.place + ", " + lane.kind, "");
  for (Span const& span : lane.spans) {
    if (span.chunk >= chunks) continue;
    busy += span.end - span.begin;
    double const x = left + (span.begin - shown.begin) * scale, wide = (span.end - span.begin) * scale;
    svg.begin_group(fmt::format("chunk {}, {}: {}", span.chunk, lane.kind, in_seconds(span.end - span.begin)),
                    span.chunk % 2 == 0 ? "even" : "odd");
    svg.bar(x, y, std::max(wide - 0.6, 0.3), bar, lane.kind);
    if (wide > 16) svg.text(x + wide / 2, y + 13, "middle", std::to_string(span.chunk), "number");
    svg.end_group();
  }
  svg.text(left + width + 10, y + 13, "start",
           fmt::format("{:.0f} %", 100 * busy / (shown.end - shown.begin)), "quiet");
}

}  // namespace

std::string timeline_svg(std::vector<Lane> const& lanes, std::string const& title) {
  Index last = 0;
  for (Lane const& lane : lanes)
    for (Span const& span : lane.spans) last = std::max(last, span.chunk);
  Index const chunks = std::min(max_chunks, last + 1);
  Interval const shown = interval_of(lanes, chunks);
  double const height = top + row * static_cast<double>(lanes.size()) + bottom;
  std::string const head =
      title + (chunks <= last ? fmt::format("; the first {} of {} chunks", chunks, last + 1) : std::string());
  Svg svg(left + width + right, height, "timeline", head,
          "One row per kind of work and device, one bar per chunk of images, numbered from 0; the share "
          "of busy time follows each row.");
  svg.bar(0, 0, left + width + right, height, "paper");
  svg.text(12, 22, "start", head, "head");
  draw_axis(svg, shown.end - shown.begin, height);
  double y = top;
  for (Lane const& lane : lanes) {
    draw_lane(svg, lane, chunks, shown, y);
    y += row;
  }
  return svg.finish_file(style);
}

std::string timeline_json(std::vector<Lane> const& lanes) {
  double const begin = interval_of(lanes, std::numeric_limits<Index>::max()).begin;
  auto events = nlohmann::json::array();
  std::map<std::string, int> places;
  int thread = 0;
  for (Lane const& lane : lanes) {
    auto const [place, is_new] = places.emplace(lane.place, static_cast<int>(places.size()));
    int const process = place->second;
    if (is_new)
      events.push_back(
          {{"ph", "M"}, {"name", "process_name"}, {"pid", process}, {"args", {{"name", lane.place}}}});
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", process},
                      {"tid", thread},
                      {"args", {{"name", lane.kind}}}});
    for (Span const& span : lane.spans)
      events.push_back({{"ph", "X"},
                        {"name", fmt::format("chunk {}", span.chunk)},
                        {"cat", lane.kind},
                        {"pid", process},
                        {"tid", thread},
                        {"ts", (span.begin - begin) * 1e6},
                        {"dur", (span.end - span.begin) * 1e6},
                        {"args", {{"chunk", span.chunk}}}});
    ++thread;
  }
  return nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace cosmati::cli
