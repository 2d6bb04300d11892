// Searches the lines of a request and the built-in ones.
#include "src/plan/built_in_tuning.h"

#include <algorithm>
#include <array>
#include <set>

#include "src/plan/gemm/tuning.h"
#include "src/plan/measured_kernel.h"

namespace cosmati::plan {
namespace {

constexpr char const* measured_gpu = "NVIDIA H200";

TuningTable const& built_in_tuning() {
  static TuningTable const table = [] {
    std::string text;
    for (std::string_view const line : built_in_tuning_lines()) text.append(line) += '\n';
    return TuningTable::parse(text, "built-in measurements");
  }();
  return table;
}

// The class of the same problem with f16 and bf16 exchanged; empty if it has neither.
std::string with_types_exchanged(std::string problems) {
  bool found = false;
  for (std::size_t at = 0; (at = problems.find("f16/", at)) != std::string::npos; at += 4, found = true)
    if (problems[at - 1] == '=')
      problems.insert(at++, "b");
    else
      problems.erase(--at, 1);
  return found ? problems : std::string();
}

// The larger and the smaller of m and n, since the kernel may exchange them; k; batch.
using Extents = std::array<Index, 4>;
Extents extents_of(Index m, Index n, Index k, Index batch) {
  return {std::max(m, n), std::min(m, n), k, batch};
}

std::set<Extents> built_in_extents() {
  std::set<Extents> all;
  auto const number = [](std::string_view line, std::string_view key) {
    return static_cast<Index>(std::stoll(std::string(line.substr(line.find(key) + key.size()))));
  };
  for (std::string_view const line : built_in_tuning_lines())
    if (line.starts_with("gemm "))
      all.insert(
          extents_of(number(line, " m="), number(line, " n="), number(line, " k="), number(line, " batch=")));
  return all;
}

}  // namespace

bool has_built_in_extents(Index m, Index n, Index k, Index batch) {
  static std::set<Extents> const all = built_in_extents();
  return all.contains(extents_of(extent_of_class(m), extent_of_class(n), extent_of_class(k), batch));
}

TuningLine const* line_of_class(PlanOptions const& options, std::string const& problems,
                                Device const& device) {
  if (problems.empty()) return nullptr;
  if (options.tuning != nullptr && options.tuning->size() > 0)
    if (TuningLine const* const line = options.tuning->find(problems, device_name(device))) return line;
  if (!options.built_in_tuning || device.backend != Backend::cuda) return nullptr;
  Gpu gpu = device.gpu;
  gpu.name = measured_gpu;
  std::string const name = tuning_name(gpu);
  TuningTable const& table = built_in_tuning();
  TuningLine const* const line = table.find(problems, name);
  if (line != nullptr) return line;
  std::string const other = with_types_exchanged(problems);
  return other.empty() ? nullptr : table.find(other, name);
}

}  // namespace cosmati::plan
