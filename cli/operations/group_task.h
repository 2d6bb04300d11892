// Groups of matrix products as a task: the slots of member g are called "a[g]", "operand bias[g]", ...
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/operations/task.h"
#include "cosmati/ops/grouped_gemm.h"

namespace cosmati::cli {

std::string name_in_group(std::string const& name, std::size_t member);  // "a[3]"

// `scalars` of the epilogue, shared by all members.
std::unique_ptr<Task> make_group_task(GroupedGemmProblem problem, Notes const& notes,
                                      std::vector<double> scalars);

std::vector<std::string> group_kernel_names(Backend backend);

}  // namespace cosmati::cli
