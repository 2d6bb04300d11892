// Plans of the C interface: creating, querying and running them.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "src/c_api/handle.h"
#include "src/c_api/objects.h"
#include "src/c_api/options.h"
#include "src/c_api/status.h"

using namespace cosmati;
using c_api::guarded;
using c_api::Options;
using c_api::require;

namespace cosmati::c_api {

Given::Given(cosmati_argument const* list, std::size_t count) : list_(list), count_(count) {
  if (count > 0) require(list, "cosmati_run", "arguments");
  if (count > max_arguments)
    refuse("cosmati_run: " + std::to_string(count) + " arguments were given; at most " +
           std::to_string(max_arguments) + " are allowed");
  for (std::size_t i = 0; i < count; ++i)
    if (list[i].name == nullptr)
      refuse("cosmati_run: the name of arguments[" + std::to_string(i) + "] is null");
}

cosmati_argument const* Given::find(char const* name) {
  for (std::size_t i = 0; i < count_; ++i)
    if (std::strcmp(list_[i].name, name) == 0) {
      used_ |= std::uint64_t{1} << i;
      return &list_[i];
    }
  return nullptr;
}

cosmati_argument const* Given::unused() const {
  for (std::size_t i = 0; i < count_; ++i)
    if ((used_ >> i & 1) == 0) return &list_[i];
  return nullptr;
}

std::string Given::names() const {
  std::string text;
  for (std::size_t i = 0; i < count_; ++i) text += (i == 0 ? "" : ", ") + std::string(list_[i].name);
  return text.empty() ? "nothing" : text;
}

namespace {

PlanOptions plan_options(Options const& given, cosmati_handle const& handle) {
  PlanOptions options;
  if (std::string const* const kernel = given.find("kernel")) options.kernel = *kernel;
  if (std::string const* const policy = given.find("policy")) options.policy = *policy;
  constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
  options.max_workspace = given.whole("max_workspace", any, any);
  if (given.find("max_error") != nullptr) options.max_error = given.positive("max_error", 1);
  options.deterministic = given.yes("deterministic", false);
  options.batch_invariant = given.yes("batch_invariant", false);
  options.tuning = handle.tuning;
  return options;
}

}  // namespace
}  // namespace cosmati::c_api

void cosmati_plan::explain() {
  explanation.clear();
  for (auto const& [considered, measured] : entries) {
    std::string line = "  " + considered.kernel + ": ";
    if (!considered.refusal.empty()) {
      line += "refused: " + considered.refusal;
    } else {
      line += considered.kernel == kernel ? "chosen" : "possible";
      if (considered.workspace_bytes > 0)
        line += fmt::format(", workspace {} bytes", considered.workspace_bytes);
      if (considered.predicted_seconds > 0)
        line += fmt::format(", predicted {:.3g} s", considered.predicted_seconds);
      if (measured > 0) line += fmt::format(", measured {:.3g} s", measured);
      if (!considered.recipe.empty()) line += ": " + considered.recipe;
      if (!considered.note.empty()) line += " (" + considered.note + ")";
    }
    explanation += line + '\n';
  }
}

void cosmati_problem_destroy(cosmati_problem_t problem) { delete problem; }

cosmati_status cosmati_make_plan(cosmati_handle_t handle, cosmati_problem_t problem, char const* options,
                                 cosmati_plan_t* plan) {
  return guarded([&] {
    require(handle, "cosmati_make_plan", "handle");
    require(problem, "cosmati_make_plan", "problem");
    require(plan, "cosmati_make_plan", "plan");
    Options const given(
        options, {"kernel", "max_workspace", "max_error", "deterministic", "batch_invariant", "policy"});
    *plan = problem->make_plan(handle->device, c_api::plan_options(given, *handle)).release();
  });
}

cosmati_status cosmati_find_plan(cosmati_handle_t handle, cosmati_problem_t problem, char const* options,
                                 cosmati_plan_t* plan) {
  return guarded([&] {
    require(handle, "cosmati_find_plan", "handle");
    require(problem, "cosmati_find_plan", "problem");
    require(plan, "cosmati_find_plan", "plan");
    Options const given(
        options, {"kernel", "max_workspace", "max_error", "deterministic", "policy", "seconds", "reference"});
    FindOptions find;
    find.plan = c_api::plan_options(given, *handle);
    find.seconds = given.positive("seconds", find.seconds);
    find.reference = given.yes("reference", find.reference);
    *plan = problem->find_plan(handle->device, find).release();
  });
}

void cosmati_plan_destroy(cosmati_plan_t plan) { delete plan; }

size_t cosmati_plan_workspace(cosmati_plan_t plan) { return plan == nullptr ? 0 : plan->workspace_bytes; }

char const* cosmati_plan_kernel(cosmati_plan_t plan) {
  return plan == nullptr ? nullptr : plan->kernel.c_str();
}

double cosmati_plan_expected_error(cosmati_plan_t plan) {
  if (plan == nullptr) return 0;
  for (auto const& [considered, measured] : plan->entries)
    if (considered.kernel == plan->kernel) return considered.expected_error;
  return 0;
}

char const* cosmati_plan_explanation(cosmati_plan_t plan) {
  return plan == nullptr ? nullptr : plan->explanation.c_str();
}

size_t cosmati_plan_candidates(cosmati_plan_t plan) { return plan == nullptr ? 0 : plan->entries.size(); }

cosmati_status cosmati_plan_candidate(cosmati_plan_t plan, size_t index, cosmati_candidate* candidate) {
  return guarded([&] {
    require(plan, "cosmati_plan_candidate", "plan");
    require(candidate, "cosmati_plan_candidate", "candidate");
    if (candidate->size != sizeof *candidate)
      c_api::refuse("cosmati_plan_candidate: candidate->size is " + std::to_string(candidate->size) +
                    "; this library's cosmati_candidate has " + std::to_string(sizeof *candidate) + " bytes");
    if (index >= plan->entries.size())
      c_api::refuse("cosmati_plan_candidate: the index is " + std::to_string(index) + "; there are " +
                    std::to_string(plan->entries.size()) + " candidates");
    auto const& [considered, measured] = plan->entries[index];
    candidate->kernel = considered.kernel.c_str();
    candidate->refusal = considered.refusal.c_str();
    candidate->recipe = considered.recipe.c_str();
    candidate->workspace_bytes = considered.workspace_bytes;
    candidate->predicted_seconds = considered.predicted_seconds;
    candidate->measured_seconds = measured;
    candidate->expected_error = considered.expected_error;
  });
}

cosmati_status cosmati_run(cosmati_plan_t plan, cosmati_argument const* arguments, size_t count,
                           void* workspace, size_t workspace_bytes, cosmati_stream stream) {
  return guarded([&] {
    require(plan, "cosmati_run", "plan");
    c_api::Given given(arguments, count);
    plan->run(given, workspace, workspace_bytes, stream);
  });
}
