// Draws rooflines on two logarithmic axes.
#include "cli/plot/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "cli/output/table.h"
#include "cli/plot/ratio.h"
#include "cli/plot/svg.h"

namespace cosmati::cli {
namespace {

constexpr double plane_width = 400, left = 40, right = 314, top = 22, bottom = 240, legend_row = 16;
constexpr std::size_t legend_columns = 3;

// Marks centered at (0, 0); the shape as well as the color identifies a type.
constexpr std::array shapes{"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
                            "M-3.5-3.5h7v7h-7z",
                            "M0-4.6L4.4 3.4H-4.4z",
                            "M0-5L4.2 0L0 5L-4.2 0z",
                            "M0 4.6L4.4-3.4H-4.4z",
                            "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
                            "M-4-2L-2-4L0-2L2-4L4-2L2 0L4 2L2 4L0 2L-2 4L-4 2L-2 0z",
                            "M-4.4 0L-2.2-3.8H2.2L4.4 0L2.2 3.8H-2.2z"};

// Powers of ten, with labels at every few of them if there are many.
class LogAxis {
 public:
  LogAxis(double minimum, double maximum, double first, double last)
      : low_(std::log10(minimum)), high_(std::log10(maximum)), first_(first), last_(last) {
    if (high_ - low_ < 1) high_ = low_ + 1;
  }
  double at(double value) const {
    return first_ + (last_ - first_) * (std::log10(value) - low_) / (high_ - low_);
  }
  double minimum() const { return std::pow(10, low_); }
  double maximum() const { return std::pow(10, high_); }
  // 1, 2 and 5 times each power of ten; for more than two decades only the powers, for many only some of
  // them.
  std::vector<double> ticks() const {
    std::vector<double> values;
    double const step = std::max(1.0, std::ceil((high_ - low_) / 8));
    for (double power = std::floor(low_); power <= high_; power += step)
      for (double const digit : {1, 2, 5}) {
        double const value = digit * std::pow(10, power);
        bool const inside = std::log10(value) >= low_ && std::log10(value) <= high_;
        if (inside && (digit == 1 || high_ - low_ < 2.2)) values.push_back(value);
      }
    return values;
  }

 private:
  double low_, high_, first_, last_;
};

struct Roof {
  std::string device;
  std::vector<PlotRecord const*> records;
  std::map<std::string, double> peaks;   // name -> operations per second
  std::map<std::string, double> bursts;  // higher rates that hold only briefly
  double copy = 0;                       // bytes per second
};

std::vector<Roof> roofs_of(std::vector<PlotRecord> const& records) {
  std::vector<Roof> roofs;
  for (PlotRecord const& record : records) {
    if (record.intensity == 0) continue;
    auto roof = std::find_if(roofs.begin(), roofs.end(),
                             [&](Roof const& known) { return known.device == record.device; });
    if (roof == roofs.end()) roof = roofs.insert(roofs.end(), {record.device, {}, {}, {}, 0});
    roof->records.push_back(&record);
    if (record.peak_gflops > 0) {
      std::string const& name = record.peak.empty() ? record.type : record.peak;
      double& peak = roof->peaks[name];
      peak = std::max(peak, record.peak_gflops * 1e9);
      if (record.peak_burst_gflops > record.peak_gflops) {
        double& burst = roof->bursts[name];
        burst = std::max(burst, record.peak_burst_gflops * 1e9);
      }
    }
    roof->copy = std::max(roof->copy, record.copy_bytes);
  }
  return roofs;
}

struct Plane {
  LogAxis x, y;
};

Plane plane_of(Roof const& roof) {
  double x_min = 1e300, x_max = 0, y_min = 1e300, y_max = 0;
  for (PlotRecord const* record : roof.records) {
    x_min = std::min(x_min, record->intensity);
    x_max = std::max(x_max, record->intensity);
    y_min = std::min(y_min, record->gflops * 1e9);
    y_max = std::max(y_max, record->gflops * 1e9);
  }
  for (auto const& [name, peak] : roof.peaks) {
    y_min = std::min(y_min, peak);
    y_max = std::max(y_max, peak);
    // The ridge point, where the slope meets the peak, must be visible.
    if (roof.copy > 0) {
      x_min = std::min(x_min, peak / roof.copy);
      x_max = std::max(x_max, peak / roof.copy);
    }
  }
  return {{x_min / 2, x_max * 2, left, right}, {y_min / 2, y_max * 1.6, bottom, top}};
}

void draw_axes(Svg& svg, Plane const& plane) {
  for (double const value : plane.x.ticks()) {
    double const x = plane.x.at(value);
    svg.line(x, top, x, bottom, "grid");
    svg.text(x, bottom + 13, "middle", in_short(value), "quiet");
  }
  for (double const value : plane.y.ticks()) {
    double const y = plane.y.at(value);
    svg.line(left, y, right, y, "grid");
    svg.text(left - 4, y + 3, "end", in_powers(value), "quiet");
  }
  svg.text(left, 11, "start", "operations per second", "quiet");
  svg.text(right, bottom + 27, "end", "operations per byte of operands and result", "quiet");
}

void draw_ceilings(Svg& svg, Plane const& plane, Roof const& roof) {
  double highest = 0;
  for (auto const& [name, peak] : roof.peaks) highest = std::max(highest, peak);
  if (highest == 0) highest = plane.y.maximum();
  if (roof.copy > 0) {
    double const from = std::max(plane.x.minimum(), plane.y.minimum() / roof.copy);
    double const to = std::min(plane.x.maximum(), highest / roof.copy);
    if (from < to)
      svg.begin_group("copies: " + in_powers(roof.copy) + "B/s, measured")
          .line(plane.x.at(from), plane.y.at(from * roof.copy), plane.x.at(to), plane.y.at(to * roof.copy),
                "ceiling")
          .end_group();
  }
  std::vector<std::pair<double, std::string>> ceilings;
  for (auto const& [name, peak] : roof.peaks) ceilings.emplace_back(peak, name);
  std::sort(ceilings.rbegin(), ceilings.rend());
  double label = -1e9;
  for (auto const& [peak, name] : ceilings) {
    double const from = roof.copy > 0 ? std::max(plane.x.minimum(), peak / roof.copy) : plane.x.minimum();
    double const y = plane.y.at(peak);
    svg.line(plane.x.at(from), y, right, y, "ceiling");
    // Labels of peaks close to each other are moved apart vertically.
    label = std::max(y + 3, label + 11);
    svg.text(right + 4, label, "start", name, "name");
  }
}

std::string point_text(PlotRecord const& record) {
  std::string text = record.subject + ' ' + record.problem + ' ' + record.type + ", " + record.kernel + ": " +
                     in_powers(record.gflops * 1e9) + "op/s at " + in_short(record.intensity) + " op/byte";
  if (record.share_of_peak > 0)
    text += ", " + in_short(100 * record.share_of_peak) + "% of the measured peak " + record.peak;
  return text + ", " + record.state;
}

class Legend {
 public:
  std::size_t place_of(std::string const& type) {
    auto const known = std::find(types_.begin(), types_.end(), type);
    if (known != types_.end()) return static_cast<std::size_t>(known - types_.begin());
    types_.push_back(type);
    return types_.size() - 1;
  }
  std::vector<std::string> const& types() const { return types_; }

  static std::string classes(std::size_t place) {
    return "point color-" + std::to_string(place % shapes.size());
  }
  static char const* shape(std::size_t place) { return shapes[place % shapes.size()]; }

 private:
  std::vector<std::string> types_;
};

void draw_points(Svg& svg, Plane const& plane, Roof const& roof, Legend& legend) {
  for (PlotRecord const* record : roof.records) {
    std::size_t const place = legend.place_of(type_text(*record));
    svg.begin_group(point_text(*record))
        .mark(plane.x.at(record->intensity), plane.y.at(record->gflops * 1e9), Legend::shape(place),
              Legend::classes(place))
        .end_group();
  }
  for (std::size_t i = 0; i < legend.types().size(); ++i) {
    double const x =
        left + 4 + static_cast<double>(i % legend_columns) * (plane_width - left) / legend_columns;
    double const y = bottom + 46 + static_cast<double>(i / legend_columns) * legend_row;
    svg.mark(x, y, Legend::shape(i), Legend::classes(i)).text(x + 8, y + 4, "start", legend.types()[i], "");
  }
}

// "bf16 wgmma 790 Top/s (burst: 850 T), f32 fma 64.96 Top/s, copies 4.234 TB/s".
std::string ceilings_text(Roof const& roof) {
  std::string text;
  for (auto const& [name, peak] : roof.peaks) {
    text += (text.empty() ? "" : ", ") + name + ' ' + in_powers(peak) + "op/s";
    auto const burst = roof.bursts.find(name);
    if (burst != roof.bursts.end()) text += " (burst: " + in_powers(burst->second) + ')';
  }
  if (roof.copy > 0) text += (text.empty() ? "copies " : ", copies ") + in_powers(roof.copy) + "B/s";
  return text;
}

std::string figure_of(Roof const& roof, std::string const& id) {
  Plane const plane = plane_of(roof);
  Legend legend;
  for (PlotRecord const* record : roof.records) (void)legend.place_of(type_text(*record));
  auto const rows = (legend.types().size() + legend_columns - 1) / legend_columns;
  std::string about = std::to_string(roof.records.size()) + " measurements";
  about += "; " + ceilings_text(roof);
  Svg svg(plane_width, bottom + 40 + legend_row * static_cast<double>(rows), id, "Roofline of " + roof.device,
          about);
  draw_axes(svg, plane);
  draw_ceilings(svg, plane, roof);
  draw_points(svg, plane, roof, legend);
  std::string caption = "<b>" + escaped(roof.device) + "</b>. " +
                        (roof.peaks.empty() ? "No ceiling was measured." : "Measured ceilings: ") +
                        escaped(ceilings_text(roof));
  return "<figure id=\"" + id + "\"><figcaption>" + caption + "</figcaption>\n" + svg.finish() +
         "</figure>\n";
}

}  // namespace

std::string in_powers(double value) {
  constexpr std::array units{"", " k", " M", " G", " T", " P"};
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  return in_short(value) + units[unit];
}

std::string roofline_figures(std::vector<PlotRecord> const& records) {
  std::string figures;
  int count = 0;
  for (Roof const& roof : roofs_of(records))
    figures += figure_of(roof, "roofline-" + std::to_string(++count));
  return figures;
}

}  // namespace cosmati::cli
