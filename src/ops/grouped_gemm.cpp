// Validation of grouped matrix products, and of their arguments.
#include "cosmati/ops/grouped_gemm.h"

#include <fmt/format.h>

#include "src/ops/check.h"

namespace cosmati {
namespace {

constexpr char const* grouped_gemm_name = "grouped gemm";

// Adds the member's number to its errors.
template <class Check>
void of_member(std::size_t number, Check&& check) {
  try {
    check();
  } catch (Error const& error) {
    throw Error(error.code(), fmt::format("member {}: {}", number, error.what()));
  }
}

void check_type(char const* name, TensorDescription const& first, TensorDescription const& other) {
  if (other.type != first.type)
    refuse(grouped_gemm_name,
           fmt::format("{} is {}, that of member 0 is {}; all members must have the same type", name,
                       name_of(other.type), name_of(first.type)));
}

void check_like(GemmProblem const& first, GemmProblem const& member) {
  if (member.batch() != 1)
    refuse(grouped_gemm_name, fmt::format("a batch of {}; it must be 1", member.batch()));
  if (member.by_pointers)
    refuse(grouped_gemm_name, "matrices given by arrays of pointers; a member has one matrix");
  if (!(member.epilogue.expression == first.epilogue.expression))
    refuse(grouped_gemm_name,
           fmt::format("the epilogue {}, that of member 0 is {}; all members must have the same epilogue",
                       member.epilogue.expression.text(), first.epilogue.expression.text()));
  check_type("a", first.a, member.a);
  check_type("b", first.b, member.b);
  check_type("c", first.c, member.c);
  check_type("d", first.d, member.d);
  if (member.accumulator != first.accumulator)
    refuse(grouped_gemm_name,
           "the accumulator type differs from that of member 0; all members must have the same type");
  auto const& names = first.epilogue.expression;
  for (std::size_t i = 0; i < first.epilogue.operands.size(); ++i)
    check_type(names.operands()[i].name.c_str(), first.epilogue.operands[i], member.epilogue.operands[i]);
  for (std::size_t i = 0; i < first.epilogue.stores.size(); ++i)
    check_type(names.stores()[i].name.c_str(), first.epilogue.stores[i], member.epilogue.stores[i]);
}

}  // namespace

void validate(GroupedGemmProblem const& problem) {
  for (std::size_t i = 0; i < problem.members.size(); ++i)
    of_member(i, [&] {
      validate(problem.members[i]);
      check_like(problem.members.front(), problem.members[i]);
    });
}

void check_arguments(GroupedGemmProblem const& problem, GroupedGemmProblem::Arguments const& arguments,
                     Backend) {
  if (arguments.members.size() != problem.members.size())
    throw Error(ErrorCode::bad_request, fmt::format("arguments of {} members; the problem has {}",
                                                    arguments.members.size(), problem.members.size()));
  for (std::size_t i = 0; i < problem.members.size(); ++i)
    of_member(i, [&] {
      GemmProblem const& member = problem.members[i];
      GemmProblem::Arguments const& own = arguments.members[i];
      GemmProblem::visit_tensors(
          member, [&](char const* name, Role, TensorDescription const& description, auto pointer) {
            check_argument(name, description, own.*pointer);
          });
      check_epilogue_arguments(member.epilogue, own.operands, own.scalars, own.stores);
    });
}

}  // namespace cosmati
