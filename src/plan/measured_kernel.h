// Lines of a tuning file that name the fastest of a problem's candidates, as `cosmati find` writes them
// (docs/decisions/0021-finding.md). Those of `cosmati tune` (src/plan/gemm/tuning.h) hold a policy as well.
#pragma once
#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cosmati/ops/operation.h"
#include "cosmati/ops/tuning.h"
#include "src/plan/built_in_tuning.h"

namespace cosmati {
struct ConvolutionProblem;
struct GemmProblem;
}  // namespace cosmati

namespace cosmati::plan {

// "conv backend=cpu direction=forward x=f32/nchw/8x3x32x32/16 ...": the operation and the class. Empty if the
// problem is outside every class (arrays of pointers, empty products, convolutions of volumes).
std::string measured_class(ConvolutionProblem const& problem, Backend backend);
std::string measured_class(GemmProblem const& problem, Backend backend);

// How the recipe of a filter gradient ends in readable form if a kernel of its own computes the bias
// gradient.
inline constexpr std::string_view bias_gradient_apart = ", then the bias gradient";

// Returns the line of the same filter gradient with a bias gradient, if its kernel computes the bias gradient
// apart: without it, that kernel saves a whole pass, and no other can save more. Null for other problems.
TuningLine const* line_with_bias_gradient(ConvolutionProblem const& problem, Device const& device,
                                          PlanOptions const& options);

// Problems for which such lines exist.
template <class Problem>
concept HasMeasuredClass = requires(Problem const& problem) {
  measured_class(problem, Backend::cpu);
};

// The device's name in such a line: tuning_name() of a GPU, or "cpu, 2 threads, avx2, onednn".
std::string device_name(Device const& device);

// Returns the line for this problem; null if there is none, or if options request a kernel, a policy or batch
// invariance.
template <class Problem>
TuningLine const* measured_line(Problem const& problem, Device const& device, PlanOptions const& options) {
  if constexpr (HasMeasuredClass<Problem>) {
    bool const asked = !options.kernel.empty() || !options.policy.empty() || options.batch_invariant;
    // Built-in lines for products have policies, and are found by their kernels.
    if (std::same_as<Problem, GemmProblem> && options.tuning == nullptr) return nullptr;
    if (asked) return nullptr;
    TuningLine const* line = line_of_class(options, measured_class(problem, device.backend), device);
    if constexpr (std::same_as<Problem, ConvolutionProblem>)
      if (line == nullptr) line = line_with_bias_gradient(problem, device, options);
    return line;
  }
  return nullptr;
}

// Returns Considered::note of the candidate that a line names. `recipe` says how it would run now.
std::string measured_note(TuningLine const& line, std::string const& refusal, std::string const& recipe);

// Reads the class, kernel and recipe of a line of `subject`. Throws Error(bad_file).
void parse_measured_words(std::string const& subject,
                          std::vector<std::pair<std::string, std::string>> const& words, TuningLine& line);

}  // namespace cosmati::plan
