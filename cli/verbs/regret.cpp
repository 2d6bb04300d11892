// Regret of plans, for find and tune.
#include "cli/verbs/regret.h"

#include <algorithm>

#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {

Regret::Regret(std::string const& limit) {
  if (limit.empty()) return;
  limit_ = parse_number(limit, "--fail-above");
  if (!(limit_ >= 1 && limit_ <= 1e6))
    throw Error(ErrorCode::bad_request,
                "--fail-above " + limit + " is out of range; expected 1 or more, e.g. 1.05");
}

void Regret::add(std::string const& problem, double ratio) { lines_.push_back({problem, ratio}); }

std::string Regret::text() const {
  if (lines_.empty()) return "";
  std::vector<Line> sorted = lines_;
  std::ranges::stable_sort(sorted, {}, &Line::ratio);
  std::size_t const half = sorted.size() / 2;
  double const median =
      sorted.size() % 2 == 1 ? sorted[half].ratio : (sorted[half - 1].ratio + sorted[half].ratio) / 2;
  return "Regret (time as planned / time of the fastest): median " + in_short(median) + ", largest " +
         in_short(sorted.back().ratio) + " (" + sorted.back().problem + "), of " +
         std::to_string(sorted.size()) + (sorted.size() == 1 ? " problem." : " problems.");
}

void Regret::check() const {
  if (limit_ == 0) return;
  std::vector<std::string> above;
  for (Line const& line : lines_)
    if (!(line.ratio <= limit_)) above.push_back(line.problem + ": " + in_short(line.ratio));
  if (!above.empty())
    throw Error(ErrorCode::wrong_result, "regret above --fail-above " + in_short(limit_) + " in " +
                                             std::to_string(above.size()) + " of " +
                                             std::to_string(lines_.size()) + ": " + join(above, "; "));
}

}  // namespace cosmati::cli
