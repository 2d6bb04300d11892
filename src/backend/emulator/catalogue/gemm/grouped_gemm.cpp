// The emulated launches of a group: one that binds pointers, and one that computes all members.
#include "src/backend/emulator/catalogue/entries.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cosmati/epilogue/parse.h"
#include "cosmati/gemm/bind.h"
#include "src/backend/emulator/catalogue/gemm/gemm_group.h"
#include "src/backend/emulator/catalogue/operand_map.h"
#include "src/plan/gemm/group_launch.h"

namespace cosmati::emulator {
namespace {

void set_operand(MatrixArguments& to, plan::MatrixForm const& form, Index, Index, Along, TensorBox const&) {
  to = plan::matrix_arguments(form, nullptr);
}
void set_operand(TensorMapOfProblem& to, plan::MatrixForm const& form, Index outer, Index depth, Along along,
                 TensorBox const& box) {
  void const* const any_address = reinterpret_cast<void const*>(std::uintptr_t{1} << 20);  // placeholder
  if (depth > 0) to.bound.map = operand_map(form, any_address, outer, depth, 1, along, box);
}

template <class Record>
plan::GroupImage image_of(GemmRecipe const& recipe, plan::GroupForm const& group,
                          GroupedGemmProblem const& problem) {
  GemmPolicy const& p = recipe.policy;
  int const size = size_of(group.common.a.type);
  TensorBox box_a{}, box_b{};
  if (is_specialized(recipe)) {
    box_a = tensor_box(recipe.a.along, size, p.block_k, p.block_m, p.cluster_n);
    box_b = tensor_box(recipe.b.along, size, p.block_k, p.block_n, p.cluster_m);
  }
  return plan::group_image<Record>(
      p, group,
      [&](Record& record, plan::CanonicalGemm const& form) {
        auto const number = static_cast<std::size_t>(&form - group.problems.data());
        GemmProblem const& member = problem.members[group.member[number]];
        set_operand(record.a, form.a, form.m, form.k, recipe.a.along, box_a);
        set_operand(record.b, form.b, form.n, form.k, recipe.b.along, box_b);
        record.d = {plan::matrix_arguments(form.d, nullptr), member.d.type};
        record.epilogue = {nullptr, form.c.present ? &member.c : nullptr, nullptr, form.swapped, false};
      },
      [](plan::SlotCollector& slots, Record const& record) {
        slots.add(record.a);
        slots.add(record.b);
        slots.add(record.d.matrix);
        slots.add_place(&record.epilogue.expression);
        slots.add_place(&record.epilogue.source_data);
      });
}

class EmulatedGroupedGemm final : public Kernel<GroupedGemmProblem> {
 public:
  explicit EmulatedGroupedGemm(Plan<GroupedGemmProblem> const& plan)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        group_(plan::group_form(problem_)),
        image_(is_specialized(recipe_) ? image_of<WarpgroupRecord>(recipe_, group_, problem_)
                                       : image_of<HostGemmParameters>(recipe_, group_, problem_)),
        entry_(find_group(recipe_, group_.common.a.type, group_.common.b.type)),
        threads_(plan.device.threads) {}

  void enqueue(GroupedGemmProblem::Arguments const& arguments, std::byte* workspace, Stream) const override {
    if (image_.count() == 0) return;
    std::vector<reference::ElementEpilogue> expressions;
    for (std::size_t const member : group_.member) {
      GemmProblem::Arguments const& own = arguments.members[member];
      expressions.emplace_back(problem_.members[member].epilogue, epilogue::gemm_indices, own.operands,
                               own.scalars, own.stores);
    }
    std::byte* const records = aligned(workspace);
    plan::bind_group(
        image_, image_.records(), records,
        [&](std::size_t problem, plan::BoundValues values) {
          GemmProblem::Arguments const& own = arguments.members[group_.member[problem]];
          values.add_product(group_.problems[problem], own);
          values.add(&expressions[problem]);
          values.add(own.c);
        },
        [&](int count, BindParameters const& parameters) {
          if (is_specialized(recipe_))
            launch_kernel<&bind_kernel<true>>({count}, bind_threads, 0, parameters, threads_);
          else
            launch_kernel<&bind_kernel<false>>({count}, bind_threads, 0, parameters, threads_);
        });
    Index const tiles = image_.first_tile.back();
    entry_.launch(static_cast<int>(is_specialized(recipe_) ? std::min(tiles, Index{emulated_places}) : tiles),
                  {records, image_.first_tile.data(), static_cast<int>(image_.count())}, threads_);
  }

 private:
  // Records are aligned like tensor maps, which is twice the alignment of a workspace.
  static std::byte* aligned(std::byte* workspace) {
    auto const address = reinterpret_cast<std::uintptr_t>(workspace);
    constexpr std::uintptr_t unit = alignof(WarpgroupRecord);
    return workspace + (unit - address % unit) % unit;
  }

  GroupedGemmProblem problem_;
  GemmRecipe recipe_;
  plan::GroupForm group_;
  plan::GroupImage image_;
  GroupEntry entry_;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_grouped_gemm(Plan<GroupedGemmProblem> const& plan) {
  return std::make_unique<EmulatedGroupedGemm>(plan);
}

}  // namespace cosmati::emulator
