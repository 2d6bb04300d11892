// Fills in the template of the report.
#include "cli/plot/page.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "cli/output/text.h"
#include "cli/plot/ratio.h"
#include "cli/plot/roofline.h"
#include "cli/plot/svg.h"
#include "cli/plot/table.h"

namespace cosmati::cli {
namespace {

std::string count_of(std::size_t count, std::string const& what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string date_text(long long time) {
  auto const seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

// "2026-11-19 to 2026-11-20"; empty if no record has a time.
std::string dates_text(std::vector<PlotRecord> const& records) {
  std::set<std::string> dates;
  for (PlotRecord const& record : records)
    if (record.time > 0) dates.insert(date_text(record.time));
  if (dates.empty()) return {};
  return *dates.begin() + (dates.size() > 1 ? " to " + *dates.rbegin() : "");
}

std::string listed(std::set<std::string> const& values) { return join({values.begin(), values.end()}, ", "); }

std::string about_text(PlotInput const& input) {
  std::set<std::string> devices, commits, files;
  for (PlotRecord const& record : input.records) {
    devices.insert(record.device);
    if (!record.commit.empty()) commits.insert(record.commit);
  }
  for (std::string const& file : input.files) files.insert(std::filesystem::path(file).filename().string());
  std::string text = count_of(input.records.size(), "measurement") + " on " +
                     join({devices.begin(), devices.end()}, " and ");
  if (std::string const dates = dates_text(input.records); !dates.empty()) text += ", " + dates;
  if (!commits.empty()) text += "; commit " + listed(commits);
  return text + "; from " + listed(files) + '.';
}

std::string notes_html(PlotInput const& input) {
  std::string notes;
  if (std::string const skipped = skipped_text(input); !skipped.empty())
    notes += "<p class=\"note\">Omitted: " + escaped(skipped) + ".</p>\n";
  if (input.replaced > 0)
    notes += "<p class=\"note\">Of repeated measurements, the last is shown; " +
             count_of(static_cast<std::size_t>(input.replaced), "earlier measurement") + " omitted.</p>\n";
  return notes;
}

// A heading for each suite, followed by its charts.
std::string ratio_sections(std::vector<RatioGroup> const& groups) {
  std::string html, suite;
  for (RatioGroup const& group : groups) {
    if (html.empty() || group.first().suite != suite) {
      if (!html.empty()) html += "</div>\n";
      suite = group.first().suite;
      html += "<h3>" + escaped(suite) + "</h3>\n<div class=\"charts\">\n";
    }
    html += ratio_figure(group);
  }
  return html.empty() ? html : html + "</div>\n";
}

// Empty sections are hidden.
std::string hidden_if(bool empty) { return empty ? " hidden" : ""; }

}  // namespace

std::string filled(std::string_view text, std::map<std::string, std::string> const& values) {
  std::string result;
  for (;;) {
    auto const begin = text.find("{{"), end = text.find("}}", begin);
    result += text.substr(0, begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) return result;
    std::string const name(text.substr(begin + 2, end - begin - 2));
    auto const value = values.find(name);
    if (value == values.end()) throw std::logic_error("the template's {{" + name + "}} has no value");
    result += value->second;
    text.remove_prefix(end + 2);
  }
}

std::string plot_page(PlotInput const& input) {
  auto const groups = ratio_groups(input.records);
  std::string const rooflines = roofline_figures(input.records);
  return filled(plot_template(), {{"about", escaped(about_text(input))},
                                  {"notes", notes_html(input)},
                                  {"summary_rows", summary_rows(groups)},
                                  {"without_ratios", hidden_if(groups.empty())},
                                  {"ratios", ratio_sections(groups)},
                                  {"without_rooflines", hidden_if(rooflines.empty())},
                                  {"rooflines", rooflines},
                                  {"count", std::to_string(input.records.size())},
                                  {"rows", measurement_rows(input.records)}});
}

}  // namespace cosmati::cli
