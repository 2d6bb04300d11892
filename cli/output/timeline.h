// Timelines of a run: a picture, or a trace for a browser's trace viewer.
#pragma once
#include <string>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::cli {

// Work on one chunk, in seconds of a clock shared by all lanes.
struct Span {
  Index chunk;
  double begin, end;
};

// Work of one kind on one device; its spans do not overlap.
struct Lane {
  std::string place, kind;  // "device 0", "compute"
  std::vector<Span> spans;
};

// A standalone SVG with one row per lane, starting when the first chunk begins; of a long run it shows the
// first chunks, as many as can be distinguished. Each row ends with the share of the time shown in which it
// was busy.
std::string timeline_svg(std::vector<Lane> const& lanes, std::string const& title);
// Events in the format of chrome://tracing and Perfetto, in microseconds.
std::string timeline_json(std::vector<Lane> const& lanes);

}  // namespace cosmati::cli
