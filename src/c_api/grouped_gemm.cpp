// Grouped matrix products of the C interface.
#include "cosmati/ops/grouped_gemm.h"

#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "src/c_api/describe.h"
#include "src/c_api/problem_of.h"

using namespace cosmati;
using c_api::checked;
using c_api::guarded;

namespace cosmati::c_api {
namespace {

// Adds the member's number to its errors.
template <class Body>
void of_member(std::size_t number, Body const& body) {
  try {
    body();
  } catch (Error const& error) {
    throw Error(error.code(), "member " + std::to_string(number) + ": " + error.what());
  }
}

bool is_tensor(GemmProblem const& problem, char const* name) {
  bool found = false;
  GemmProblem::visit_tensors(problem, [&](char const* tensor, Role, TensorDescription const&, auto) {
    found = found || std::strcmp(tensor, name) == 0;
  });
  auto const& expression = problem.epilogue.expression;
  for (auto const& operand : expression.operands()) found = found || operand.name == name;
  for (auto const& store : expression.stores()) found = found || store.name == name;
  return found;
}

}  // namespace

// Each member's arguments are the caller's, with the member's element of each array of pointers.
template <>
class Binding<GroupedGemmProblem> {
 public:
  Binding(GroupedGemmProblem const& group, Names const& names, Given const& given) {
    if (group.members.empty()) return;
    std::array<cosmati_argument, max_arguments> own;
    std::array<void const* const*, max_arguments> pointers{};
    std::size_t count = 0;
    for (cosmati_argument const& one : given.list()) {
      bool const array = one.data != nullptr && is_tensor(group.members.front(), one.name);
      if (array) pointers[count] = static_cast<void const* const*>(one.data);
      own[count++] = one;
    }
    for (std::size_t i = 0; i < group.members.size(); ++i)
      of_member(i, [&] {
        for (std::size_t j = 0; j < count; ++j)
          if (pointers[j] != nullptr) own[j].data = pointers[j][i];
        Given of_one(own.data(), count);
        each_.push_back(bindings_.emplace_back(group.members[i], names, of_one).arguments);
      });
    arguments.members = each_;
  }
  Binding(Binding const&) = delete;
  Binding& operator=(Binding const&) = delete;

  GroupedGemmProblem::Arguments arguments = {};

 private:
  std::deque<Binding<GemmProblem>> bindings_;  // storage that the arguments refer to
  std::vector<GemmProblem::Arguments> each_;
};

namespace {

class GroupProblem final : public cosmati_problem {
 public:
  explicit GroupProblem(GroupedGemmProblem group) : group_(std::move(group)) {
    validate(group_);
    if (!group_.members.empty()) check_names(group_.members.front(), {});
  }

  std::unique_ptr<cosmati_plan> make_plan(Device const& device, PlanOptions const& options) const override {
    return std::make_unique<PlanOf<GroupedGemmProblem>>(prepare(cosmati::make_plan(group_, device, options)),
                                                        Names());
  }

  std::unique_ptr<cosmati_plan> find_plan(Device const&, FindOptions const&) const override {
    throw Error(ErrorCode::unavailable,
                "cosmati_find_plan: groups of matrix products are not supported; use cosmati_make_plan");
  }

 private:
  GroupedGemmProblem group_;
};

}  // namespace
}  // namespace cosmati::c_api

cosmati_status cosmati_grouped_gemm_problem(cosmati_grouped_gemm const* group, cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "grouped gemm";
    cosmati_grouped_gemm const& given = checked(operation, group, problem);
    if (given.count > 0) c_api::require(given.members, operation, "members");
    GroupedGemmProblem result;
    for (std::size_t i = 0; i < given.count; ++i)
      c_api::of_member(i, [&] {
        c_api::check_size("gemm", given.members[i].size, sizeof(cosmati_gemm));
        result.members.push_back(c_api::gemm_of("gemm", given.members[i]));
      });
    *problem = std::make_unique<c_api::GroupProblem>(std::move(result)).release();
  });
}
