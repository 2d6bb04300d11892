// Building blocks of the ordered candidate lists, and their instantiation.
#pragma once
#include <utility>
#include <vector>

#include "reference/reference.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/runtime/module.h"
#include "src/plan/make_plan.h"

namespace cosmati {

// Marks a candidate that also supports volumes, (N, C, D, H, W).
template <class Problem>
std::string takes_depth(Problem const&, Device const&) {
  return {};
}
template <class Problem>
Candidate<Problem> with_depth(Candidate<Problem> candidate) {
  candidate.requirements.insert(candidate.requirements.begin(), {&takes_depth<Problem>});
  return candidate;
}

// Returns the list, in which candidates without that mark reject volumes.
template <class Problem>
std::vector<Candidate<Problem>> marked(std::vector<Candidate<Problem>> list) {
  if constexpr (requires(Problem problem) { problem.has_depth(); })
    for (Candidate<Problem>& candidate : list) {
      auto& requirements = candidate.requirements;
      if (!requirements.empty() && requirements.front().violation == &takes_depth<Problem>) continue;
      requirements.insert(requirements.begin(), {[](Problem const& problem, Device const&) -> std::string {
                            return problem.has_depth() ? "supports images (N, C, H, W), not volumes "
                                                         "(N, C, D, H, W)"
                                                       : "";
                          }});
    }
  return list;
}

template <class Problem>
Candidate<Problem> reference_candidate() {
  auto candidate =
      function_candidate<Problem, static_cast<void (*)(Problem const&, typename Problem::Arguments const&)>(
                                      &reference::run<Problem>)>("reference");
  candidate.takes_pointers = true;
  candidate.batch_invariant = true;  // each output is computed by a separate loop
  if constexpr (requires(Problem problem) { problem.has_depth(); }) return with_depth(std::move(candidate));
  return candidate;
}

// Marks a host kernel (VectorProgram) that computes each row or element independently, with any strides.
template <class Problem>
Candidate<Problem> by_itself(Candidate<Problem> candidate) {
  candidate.batch_invariant = true;
  return candidate;
}

// Returns `first`, then oneDNN's candidates, `then`, conversions to f32 or f64 for one of the preceding ones,
// `last`, and the reference, which accepts everything.
template <class Problem>
std::vector<Candidate<Problem>> cpu_list(std::vector<Candidate<Problem>> first,
                                         std::vector<Candidate<Problem>> then = {},
                                         std::vector<Candidate<Problem>> last = {}) {
  std::vector<Candidate<Problem>> list = std::move(first);
  cpu::append_onednn_candidates(list);
  list.insert(list.end(), then.begin(), then.end());
  list.push_back(cpu::converted_candidate<Problem>());
  list.insert(list.end(), last.begin(), last.end());
  list.push_back(reference_candidate<Problem>());
  return list;
}

// Candidates of the backends cuda and emulator; specialized for the problems with kernels there.
template <class Problem>
std::vector<Candidate<Problem>> gpu_list(Backend) {
  return {};
}

}  // namespace cosmati

// Defines candidates<Problem>(Backend) and instantiates make_plan and prepare. The other arguments are those
// of cpu_list.
#define COSMATI_PLAN(Problem, ...)                                                                        \
  namespace cosmati {                                                                                     \
  template <>                                                                                             \
  std::vector<Candidate<Problem>> const& candidates<Problem>(Backend backend) {                           \
    static std::vector<Candidate<Problem>> const cpu = marked(cpu_list<Problem>(__VA_ARGS__));            \
    static std::vector<Candidate<Problem>> const truth{reference_candidate<Problem>()};                   \
    static std::vector<Candidate<Problem>> const cuda = marked(gpu_list<Problem>(Backend::cuda));         \
    static std::vector<Candidate<Problem>> const emulator = marked(gpu_list<Problem>(Backend::emulator)); \
    switch (backend) {                                                                                    \
      case Backend::cuda: return cuda;                                                                    \
      case Backend::emulator: return emulator;                                                            \
      case Backend::reference: return truth;                                                              \
      case Backend::cpu: break;                                                                           \
    }                                                                                                     \
    return cpu;                                                                                           \
  }                                                                                                       \
  template Plan<Problem> make_plan(Problem const&, Device const&, PlanOptions const&);                    \
  template Prepared<Problem> prepare(Plan<Problem> const&);                                               \
  }
