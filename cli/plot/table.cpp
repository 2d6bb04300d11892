// The tables of a report. Rows and cells have ARIA roles, because narrow screens lay them out as cards.
#include "cli/plot/table.h"

#include <fmt/format.h>

#include "cli/output/table.h"
#include "cli/plot/roofline.h"
#include "cli/plot/svg.h"

namespace cosmati::cli {
namespace {

// `head` labels the cell on a card.
std::string cell(std::string_view head, std::string const& html) {
  return fmt::format("<td role=\"cell\" data-head=\"{}\">{}</td>", head, html);
}

// Columns of numbers are sorted by `value`, not by the text shown.
std::string number_cell(std::string_view head, double value, std::string const& text) {
  if (value == 0) return fmt::format("<td role=\"cell\" data-head=\"{}\" class=\"none\"></td>", head);
  return fmt::format("<td role=\"cell\" data-head=\"{}\" class=\"number\" data-value=\"{:.6g}\">{}</td>",
                     head, value, escaped(text));
}

std::string row_head(std::string const& html) {
  return "<th role=\"rowheader\" scope=\"row\">" + html + "</th>";
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

// "large 128x128x8"; a tooltip shows the rest.
std::string kernel_html(PlotRecord const& record) {
  std::string html = "<span>" + escaped(record.kernel);
  if (!record.policy.empty())
    html += fmt::format(" <small title=\"{}\">{}</small>", escaped(record.policy),
                        escaped(record.policy.substr(0, record.policy.find(','))));
  return html + "</span>";
}

}  // namespace

std::string summary_rows(std::vector<RatioGroup> const& groups) {
  std::string rows;
  for (RatioGroup const& group : groups) {
    PlotRecord const& first = group.first();
    RatioSummary const summary = summary_of(group);
    rows += "<tr role=\"row\">" +
            row_head(fmt::format("<a href=\"#{}\">{}: {} {}</a> <small>{}, {}</small>", group.id,
                                 escaped(first.suite), escaped(first.subject), escaped(type_text(first)),
                                 escaped(first.peer), escaped(first.device))) +
            number_cell("count", static_cast<double>(group.records.size()),
                        std::to_string(group.records.size())) +
            number_cell("mean", summary.mean, ratio_text(summary.mean)) +
            number_cell("min", summary.minimum, ratio_text(summary.minimum)) +
            number_cell("max", summary.largest, ratio_text(summary.largest)) + "</tr>\n";
  }
  return rows;
}

std::string measurement_rows(std::vector<PlotRecord> const& records) {
  std::string rows;
  for (PlotRecord const& record : records)
    rows +=
        "<tr role=\"row\">" + row_head(escaped(record.subject + ' ' + record.problem)) +
        cell("type", escaped(type_text(record))) + cell("suite", escaped(record.suite)) +
        cell("kernel", kernel_html(record)) +
        number_cell("median", record.seconds, in_seconds(record.seconds)) +
        number_cell("op/s", record.gflops, in_powers(record.gflops * 1e9)) +
        number_cell("of peak", record.share_of_peak,
                    percent(record.share_of_peak) + (record.peak.empty() ? "" : " " + record.peak)) +
        number_cell("of copies", record.share_of_copy, percent(record.share_of_copy)) +
        cell("peer", escaped(record.refusal.empty() ? record.peer : record.peer + ": " + record.refusal)) +
        number_cell("ratio", record.ratio, record.ratio > 0 ? interval_text(record) : "") +
        fmt::format("<td role=\"cell\" data-head=\"state\"{}>{}</td>", record.wrong ? " class=\"alarm\"" : "",
                    escaped(record.state)) +
        cell("device", escaped(record.device)) + "</tr>\n";
  return rows;
}

}  // namespace cosmati::cli
