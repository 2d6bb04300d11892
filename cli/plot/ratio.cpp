// Draws ratios to peers as bars.
#include "cli/plot/ratio.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "cli/bench/timing.h"
#include "cli/output/table.h"
#include "cli/plot/svg.h"

namespace cosmati::cli {
namespace {

constexpr double chart_width = 360, margin = 8, header_height = 34, row_pitch = 27, bar = 9;
constexpr std::size_t longest_label = 44;
constexpr std::size_t max_in_picture = 24;  // fits on a printed page

struct Axis {
  double top = 1;  // the ratio at the right edge of the chart
  double step = 0.25;

  double x(double ratio) const {
    return margin + (chart_width - 2 * margin) * std::clamp(ratio / top, 0.0, 1.0);
  }
};

// Bars far above the rest are truncated, so that a few problems do not flatten all others.
Axis axis_of(RatioGroup const& group) {
  std::vector<double> ratios;
  for (PlotRecord const* record : group.records) ratios.push_back(record->ratio_high);
  double const largest = quantile(ratios, 1), usual = quantile(ratios, 0.5);
  double const top = std::clamp(1.04 * largest, 1.15, 2.5 * std::max(1.0, usual));
  double step = std::pow(10, std::floor(std::log10(top)));
  for (double const finer : {0.5, 0.25, 0.2}) {
    double const part = std::pow(10, std::floor(std::log10(top))) * finer;
    if (top / part <= 7) step = part;
  }
  return {top, step};
}

std::string cut(std::string const& text, std::size_t maximum) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0u) != 0x80u && ++count > maximum)
      return text.substr(0, i) + "\xe2\x80\xa6";
  return text;
}

// Problems that were measured with several kernels.
std::set<std::string> repeated_problems(RatioGroup const& group) {
  std::set<std::string> seen, repeated;
  for (PlotRecord const* record : group.records)
    if (!seen.insert(record->problem).second) repeated.insert(record->problem);
  return repeated;
}

void draw_axis(Svg& svg, Axis const& axis, double bottom) {
  svg.text(margin, 12, "start", "peer time / our time: longer is faster", "quiet");
  for (int i = 0; i * axis.step <= axis.top; ++i) {
    double const ratio = i * axis.step, x = axis.x(ratio);
    bool const is_one = std::abs(ratio - 1) < 1e-9;
    if (!is_one) svg.line(x, header_height - 4, x, bottom, "grid");
    svg.text(x, header_height - 8,
             i == 0                 ? "start"
             : x > chart_width - 16 ? "end"
                                    : "middle",
             in_short(ratio), is_one ? "" : "quiet");
  }
}

void draw_bar(Svg& svg, Axis const& axis, PlotRecord const& record, std::string const& label, double y) {
  char const* const judgement = record.wrong ? "wrong" : record.ratio >= 1 ? "faster" : "slower";
  svg.begin_group(label + ", " + record.kernel + ": " + interval_text(record) + ", " + record.state);
  svg.text(margin, y + 11, "start", cut(label, longest_label), "label");
  svg.text(chart_width - margin, y + 11, "end", (record.wrong ? "FAILED, " : "") + ratio_text(record.ratio),
           "label value");
  double const end = axis.x(record.ratio), middle = y + 15 + bar / 2;
  svg.bar(margin, y + 15, end - margin, bar, judgement);
  if (record.ratio > axis.top) svg.text(end - 3, y + 15 + bar - 1, "end", "\xe2\x80\xa6", "beyond");
  if (axis.x(record.ratio_high) - axis.x(record.ratio_low) > 1.5)
    svg.line(axis.x(record.ratio_low), middle, axis.x(record.ratio_high), middle, "interval");
  svg.line(axis.x(1), y + 13, axis.x(1), y + 17 + bar, "one");
  svg.end_group();
}

std::string caption_of(RatioGroup const& group) {
  PlotRecord const& first = group.first();
  RatioSummary const summary = summary_of(group);
  std::string text = "<b>" + escaped(first.subject + ' ' + type_text(first)) + "</b> against " +
                     escaped(peer_text(first)) + " on " + escaped(first.device);
  if (summary.count > 0)
    text += ". Geometric mean <b>" + ratio_text(summary.mean) + "</b>, min " + ratio_text(summary.minimum) +
            ", max " + ratio_text(summary.largest);
  if (group.without_ratio > 0)
    text += "; " + std::to_string(group.without_ratio) + " more that the peer did not run";
  return text + '.';
}

// Draws the records [first, last).
std::string picture_of(RatioGroup const& group, std::size_t first, std::size_t last) {
  PlotRecord const& some = group.first();
  Axis const axis = axis_of(group);
  auto const repeated = repeated_problems(group);
  double const bottom = header_height + row_pitch * static_cast<double>(last - first);
  std::string about;
  for (std::size_t i = first; i < last; ++i)
    about +=
        (i == first ? "" : "; ") + group.records[i]->problem + ": " + ratio_text(group.records[i]->ratio);
  Svg svg(chart_width, bottom + 6, group.id + '-' + std::to_string(first + 1),
          some.suite + ": " + some.subject + ' ' + type_text(some) + ", ratio to " + some.peer, about);
  draw_axis(svg, axis, bottom);
  for (std::size_t i = first; i < last; ++i) {
    PlotRecord const& record = *group.records[i];
    draw_bar(svg, axis, record,
             record.problem + (repeated.contains(record.problem) ? ", " + record.kernel : ""),
             header_height + row_pitch * static_cast<double>(i - first));
  }
  return svg.finish() + '\n';
}

}  // namespace

std::vector<RatioGroup> ratio_groups(std::vector<PlotRecord> const& records) {
  std::vector<RatioGroup> groups;
  std::map<std::array<std::string, 6>, std::size_t> places;
  for (PlotRecord const& record : records) {
    if (record.peer.empty()) continue;
    auto const [place, is_new] = places.emplace(
        std::array{record.suite, record.subject, record.type, record.sums, record.device, record.peer},
        groups.size());
    if (is_new) groups.emplace_back();
    RatioGroup& group = groups[place->second];
    if (record.ratio > 0)
      group.records.push_back(&record);
    else
      ++group.without_ratio;
  }
  std::erase_if(groups, [](RatioGroup const& group) { return group.records.empty(); });
  std::map<std::string, std::size_t> order;
  for (RatioGroup const& group : groups) order.emplace(group.first().suite, order.size());
  std::stable_sort(groups.begin(), groups.end(), [&order](RatioGroup const& a, RatioGroup const& b) {
    return order.at(a.first().suite) < order.at(b.first().suite);
  });
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].id = "ratio-" + std::to_string(i + 1);
  return groups;
}

RatioSummary summary_of(RatioGroup const& group) {
  RatioSummary summary;
  double logarithms = 0;
  for (PlotRecord const* record : group.records) {
    if (record->wrong) continue;
    logarithms += std::log(record->ratio);
    summary.minimum = summary.count == 0 ? record->ratio : std::min(summary.minimum, record->ratio);
    summary.largest = std::max(summary.largest, record->ratio);
    ++summary.count;
  }
  if (summary.count > 0) summary.mean = std::exp(logarithms / static_cast<double>(summary.count));
  return summary;
}

std::string type_text(PlotRecord const& record) {
  bool const is_integer = record.type == "s8" || record.type == "u8" || record.type == "s32";
  std::string const usual = is_integer ? "s32" : record.type == "f64" ? "f64" : "f32";
  return record.sums.empty() || record.sums == usual ? record.type : record.type + ", sums in " + record.sums;
}

std::string ratio_text(double ratio) {
  return ratio < 10 ? fmt::format("{:.3f}", ratio) : fmt::format("{:.4g}", ratio);
}

std::string interval_text(PlotRecord const& record) {
  return ratio_text(record.ratio) + " [" + ratio_text(record.ratio_low) + ", " +
         ratio_text(record.ratio_high) + ']';
}

std::string peer_text(PlotRecord const& record) {
  return record.peer_version.empty() ? record.peer : record.peer + " (" + record.peer_version + ')';
}

std::string ratio_figure(RatioGroup const& group) {
  std::size_t const count = group.records.size(), parts = (count + max_in_picture - 1) / max_in_picture;
  std::string pictures;
  for (std::size_t part = 0; part < parts; ++part)
    pictures += picture_of(group, part * count / parts, (part + 1) * count / parts);
  return "<figure id=\"" + group.id + '"' + (parts > 1 ? " class=\"long\"" : "") + "><figcaption>" +
         caption_of(group) + "</figcaption>\n<div class=\"parts\">\n" + pictures + "</div></figure>\n";
}

}  // namespace cosmati::cli
