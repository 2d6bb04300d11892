// The body of `cosmati run`: load, plan, run, save.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/operations/subject.h"
#include "cli/options/options.h"

namespace cosmati::cli {

struct RunRequest {
  std::unique_ptr<Subject> subject;
  std::map<std::string, std::string> files;  // option -> path; empty path: not given
  std::vector<std::string> operands;         // NAME=FILE
  std::vector<std::string> stores;           // NAME=OUTPUT
  bool time = false;                         // repeat the call and report its time
  Common common;
};

void run_job(RunRequest const& request);

// Throws Error(bad_request) for values that are invalid for all operations. Applies --cache.
void check_options(Common const& common);

}  // namespace cosmati::cli
