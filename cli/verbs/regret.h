// What plans lose: the time of the planned kernel divided by that of the fastest choice measured.
#pragma once
#include <string>
#include <vector>

namespace cosmati::cli {

class Regret {
 public:
  // `limit`: the value of --fail-above, empty if it was not given.
  explicit Regret(std::string const& limit);

  // `ratio`: time of the plan / time of the fastest choice, of one problem.
  void add(std::string const& problem, double ratio);

  // One sentence with the median and the largest ratio; empty if nothing was measured.
  std::string text() const;

  // Throws Error(wrong_result) that names the problems above the limit.
  void check() const;

 private:
  struct Line {
    std::string problem;
    double ratio;
  };

  double limit_ = 0;  // 0: none
  std::vector<Line> lines_;
};

}  // namespace cosmati::cli
