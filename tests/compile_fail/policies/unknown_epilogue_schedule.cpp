// A number that names no epilogue schedule.
// expect: unknown epilogue schedule; valid values: direct, staged
// names: EpilogueScheduleOf<
#include "tests/compile_fail/mistake.h"

constexpr cosmati::GemmPolicy policy = [] {
  cosmati::GemmPolicy changed = mistake::right;
  changed.epilogue = static_cast<cosmati::EpilogueSchedule>(9);
  return changed;
}();
auto const parameters = mistake::parameters<mistake::Gemm<policy>>();
