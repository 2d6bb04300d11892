// The body of `cosmati verify`.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/operations/subject.h"
#include "cli/options/options.h"
#include "cli/options/sizes.h"
#include "cli/options/suites.h"

namespace cosmati::cli {

struct VerifyRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  long long count = not_given;  // default: 20
  bool small_integers = false;
  bool gaps = false;
  long long misalignment = not_given;  // in bytes
  std::string data;                    // normal, hard or mixed; empty: the default
  std::string suite, shapes;           // suite name, suite file
  // Floating-point operations; larger problems of a suite are skipped with a message.
  double max_operations = 2e9;
  Common common;
  std::optional<Suite> workload = {};  // as in BenchRequest

  VerifyRequest copy() const;
};

// As in bench_job.h.
using WithVerifyOptions = std::function<VerifyRequest(VerifyRequest const&, ProblemOptions const&)>;

// Prints a row for each problem; throws Error(wrong_result) after the last one if any result was wrong.
void verify_job(VerifyRequest const& request, WithVerifyOptions const& with_options);

}  // namespace cosmati::cli
