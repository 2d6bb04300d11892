// The common form of products of different sizes.
#include "src/plan/gemm/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

double work_of(CanonicalGemm const& form) {
  return static_cast<double>(form.m) * static_cast<double>(form.n) * static_cast<double>(form.k + 1);
}

// The operand of the largest problem with the major and width that are valid for all problems. If its own
// strides allow a wider access or another major, it gets strides that allow exactly the common one.
template <class Extent>
MatrixForm common_operand(std::vector<CanonicalGemm> const& problems, CanonicalGemm const& largest,
                          MatrixForm CanonicalGemm::*operand, Extent CanonicalGemm::*outer) {
  MatrixForm form = largest.*operand;
  auto const width_along = [&](Along along) {
    int width = 16 / size_of(form.type);
    for (CanonicalGemm const& problem : problems)
      if (problem.k > 0)
        width = std::min(width, width_of(problem.*operand, along, problem.*outer, problem.k));
    return width;
  };
  OperandAccess const own = access_of(form);
  int const depth = width_along(Along::k), across = width_along(Along::mn);
  OperandAccess const all{depth == across  ? own.along
                          : depth > across ? Along::k
                                           : Along::mn,
                          std::max(depth, across)};
  if (all == own) return form;
  form.alignment = all.width * size_of(form.type);
  Index const extent = all.along == Along::k ? largest.k : largest.*outer;
  Index const pitch = (extent + all.width - 1) / all.width * all.width + all.width;
  bool const single = all.width == 1;  // a stride of 1 would allow wider accesses
  form.row_stride = all.along == Along::mn ? (single ? 2 : 1) : (single ? 2 * pitch + 1 : pitch);
  form.column_stride = all.along == Along::k ? (single ? 2 : 1) : (single ? 2 * pitch + 1 : pitch);
  return form;
}

// The common width along n of a tensor of the epilogue. Problems with a single column do not restrict it.
template <class Member>
void narrow(MatrixForm& common, std::vector<CanonicalGemm> const& problems, Member const& member) {
  bool any = false;
  int width = 16;
  for (CanonicalGemm const& problem : problems)
    if (problem.n > 1) {
      any = true;
      width = std::min(width, member(problem).width);
    }
  common.width = any ? width : 1;
}

}  // namespace

GroupForm group_form(GroupedGemmProblem const& problem) {
  GroupForm group;
  auto const& members = problem.members;
  bool swapped = false;  // as for the largest member
  double maximum = -1;
  for (GemmProblem const& member : members) {
    CanonicalGemm const form = canonical(member);
    if (work_of(form) > maximum) maximum = work_of(form), swapped = form.swapped;
  }
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].m() > 0 && members[i].n() > 0 && members[i].batch() > 0) group.member.push_back(i);
  std::stable_sort(group.member.begin(), group.member.end(),
                   [&](std::size_t x, std::size_t y) { return members[x].k() > members[y].k(); });
  for (std::size_t const i : group.member) group.problems.push_back(canonical(members[i], swapped));

  auto const& problems = group.problems;
  CanonicalGemm& common = group.common;
  if (problems.empty()) {
    if (!members.empty()) common = canonical(members.front(), swapped);
    common.batch = 0;
    return group;
  }
  CanonicalGemm const& largest = *std::max_element(
      problems.begin(), problems.end(),
      [](CanonicalGemm const& x, CanonicalGemm const& y) { return work_of(x) < work_of(y); });
  common = largest;
  common.fast_sums =
      std::all_of(problems.begin(), problems.end(), [](CanonicalGemm const& form) { return form.fast_sums; });
  common.batch = 1;
  common.a = common_operand(problems, largest, &CanonicalGemm::a, &CanonicalGemm::m);
  common.b = common_operand(problems, largest, &CanonicalGemm::b, &CanonicalGemm::n);
  narrow(common.d, problems, [](CanonicalGemm const& form) { return form.d; });
  narrow(common.c, problems, [](CanonicalGemm const& form) { return form.c; });
  for (std::size_t i = 0; i < common.operands.size(); ++i)
    narrow(common.operands[i], problems, [i](CanonicalGemm const& form) { return form.operands[i]; });
  for (std::size_t i = 0; i < common.stores.size(); ++i)
    narrow(common.stores[i], problems, [i](CanonicalGemm const& form) { return form.stores[i]; });
  for (CanonicalGemm const& form : problems) {
    common.m = std::max(common.m, form.m);
    common.n = std::max(common.n, form.n);
    common.k = std::max(common.k, form.k);
  }
  // Results are stored by TMA only if TMA can store those of all members.
  GemmPolicy any;
  any.block_n = any.warp_n = 256;
  if (!std::all_of(problems.begin(), problems.end(), [&](CanonicalGemm const& form) {
        return direction_of_result(form) == Along::k && stores_by_tma(any, form);
      }))
    common.d.alignment = size_of(common.d.type);
  return group;
}

std::vector<Index> first_tiles(GemmPolicy const& policy, GroupForm const& group) {
  std::vector<Index> first{0};
  for (CanonicalGemm const& form : group.problems)
    first.push_back(first.back() + tiles_of(policy, form) / (policy.cluster_m * policy.cluster_n));
  return first;
}

Volume volume_of(GroupForm const& group, GemmRecipe const& recipe) {
  Volume all;
  all.of_group = true;
  double steps = 0;
  for (CanonicalGemm const& form : group.problems) {
    Volume const one = volume_of(form, recipe);
    all.tiles += one.tiles;
    steps += one.tiles * one.steps;
    all.operand_bytes += one.operand_bytes;
    all.result_bytes += one.result_bytes;
    all.read_again_bytes += bytes_read_again(form, recipe.policy);
    all.longest = std::max(all.longest, one.longest);
  }
  all.steps = all.tiles > 0 ? steps / all.tiles : 0;
  return all;
}

std::string wgmma_violation(GroupForm const& group, Gpu const& gpu) {
  CanonicalGemm const& common = group.common;
  for (std::size_t i = 0; i < group.problems.size(); ++i)
    if (group.problems[i].k > 0)  // otherwise nothing is loaded
      if (std::string const sentence = wgmma_violation(group.problems[i], gpu); !sentence.empty())
        return fmt::format("member {}: {}", group.member[i], sentence);
  constexpr int unit = 16;  // bytes
  int const size = size_of(common.a.type);
  if (access_of(common.a).width * size < unit || access_of(common.b).width * size < unit)
    return "operands of the members are contiguous along different indices";
  if (size > 1 && size != 4) return {};
  for (MatrixForm const* operand : {&common.a, &common.b})
    if (access_of(*operand).along == Along::mn)
      return fmt::format("multiply wgmma requires {} contiguous along k", name_of(operand->type));
  return {};
}

}  // namespace cosmati::plan
