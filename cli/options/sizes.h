// Sizes of the problems that verify, explain and bench generate.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cli/operations/subject.h"
#include "cli/options/options.h"

namespace cosmati::cli {

struct SizeRequest {
  std::string size;                            // "127x65x333"
  std::map<std::string, std::string> letters;  // "m" -> "64:256:64"
  std::string images;  // "1,16": overrides the batch sizes of a suite; empty: as listed there

  // The same request for a suite's problem, which has its own size.
  SizeRequest for_suite() const { return {"", {}, images}; }
};

void add_size_options(Options& options, Subject const& subject, SizeRequest& request);

// All combinations of extents, one per letter of the subject; empty if no size was requested.
std::vector<std::vector<Index>> requested_sizes(Subject const& subject, SizeRequest const& request);

// The types of --type, which here may be a list or "all"; empty means the subject's default.
std::vector<std::string> requested_types(Subject const& subject, std::string const& text);

// A problem of this size on generated data.
Job made_job(Subject const& subject, std::vector<Index> const& size, Common const& common);

}  // namespace cosmati::cli
