// The body of `cosmati verify`.
#pragma once
#include <memory>

#include "cli/options.h"
#include "cli/sizes.h"
#include "cli/subject.h"

namespace cosmati::cli {

constexpr long long not_given = -1'000'000;

struct VerifyRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  long long count = 20;
  bool small_integers = false;
  bool gaps = false;
  long long misalignment = not_given;  // bytes
  Common common;
};

// Prints a row for each problem; throws Error(wrong_result) after the last if one of them was wrong.
void verify_job(VerifyRequest const& request);

}  // namespace cosmati::cli
