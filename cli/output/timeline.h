// Timelines of a run: a picture, or a trace for a browser's trace viewer.
#pragma once
#include <string>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::cli {

// Work on one chunk; seconds of one clock for all lanes.
struct Span {
  Index chunk;
  double begin, end;
};

// Work of one kind on one device, with spans that do not overlap.
struct Lane {
  std::string place, kind;  // "device 0", "compute"
  std::vector<Span> spans;
};

// Standing alone, a row a lane from the first chunk's begin on; of long runs the first chunks, as many as can
// be told apart. Behind each row: the share of the time shown in which it was busy.
std::string timeline_svg(std::vector<Lane> const& lanes, std::string const& title);
// Trace events of the format that chrome://tracing and Perfetto read; microseconds.
std::string timeline_json(std::vector<Lane> const& lanes);

}  // namespace cosmati::cli
