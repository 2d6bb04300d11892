// The records of a group are created once and stay in device memory. Each run copies them to the workspace,
// binds its pointers in the copy, and launches the product.
#include "src/backend/cuda/grouped_gemm.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "cosmati/gemm/group_arguments.h"
#include "src/backend/cuda/bind.h"
#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/driver/tensor_map.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/gemm/group_launch.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::cuda {
namespace {

bool is_specialized(GemmRecipe const& recipe) {
  return recipe.policy.main_loop == MainLoop::warp_specialized;
}

std::size_t scalars_of(GroupedGemmProblem const& problem) {
  return problem.members.front().epilogue.expression.scalars().size();
}

// Fills in what does not depend on pointers. Encoding a tensor map needs an address; it is replaced at run
// time.
class RecordFiller {
 public:
  RecordFiller(GemmRecipe const& recipe, plan::CanonicalGemm const& common) : recipe_(recipe) {
    GemmPolicy const& p = recipe.policy;
    if (!is_specialized(recipe)) return;
    int const size = size_of(common.a.type);
    a_ = tensor_box(recipe.a.along, size, p.block_k, p.block_m, p.cluster_n);
    b_ = tensor_box(recipe.b.along, size, p.block_k, p.block_n, p.cluster_m);
    if (plan::stores_by_engine(p, common)) store_ = plan::tensor_store_of(p, common);
  }

  template <class Record>
  void operator()(Record& record, plan::CanonicalGemm const& form) const {
    operand(record.a, form.a, form.m, form.k, recipe_.a, a_);
    operand(record.b, form.b, form.n, form.k, recipe_.b, b_);
    result(record.d, form);
    if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(record.epilogue)>, NoEpilogueArguments>) {
      if (form.c.present) record.epilogue.source = plan::matrix_arguments(form.c, nullptr);
      for (std::size_t i = 0; i < form.operands.size(); ++i)
        record.epilogue.operands[i] = plan::matrix_arguments(form.operands[i], nullptr);
      for (std::size_t i = 0; i < form.stores.size(); ++i)
        record.epilogue.stores[i] = plan::matrix_arguments(form.stores[i], nullptr);
    }
  }

 private:
  static void const* any_address() { return reinterpret_cast<void const*>(std::uintptr_t{1} << 20); }

  static void operand(MatrixArguments& to, plan::MatrixForm const& form, Index, Index, OperandAccess const&,
                      TensorBox const&) {
    to = plan::matrix_arguments(form, nullptr);
  }
  static void operand(TensorMapOfProblem& to, plan::MatrixForm const& form, Index outer, Index depth,
                      OperandAccess const& access, TensorBox const& box) {
    if (depth > 0)  // otherwise nothing is loaded
      to.bound.map = tensor_map(form, any_address(), outer, depth, 1, access.along == Along::depth, box.row,
                                box.slice_rows);
  }
  void result(MatrixArguments& to, plan::CanonicalGemm const& form) const {
    to = plan::matrix_arguments(form.d, nullptr);
  }
  void result(TensorMapOfProblem& to, plan::CanonicalGemm const& form) const {
    to.bound.map =
        tensor_map(form.d, any_address(), form.m, form.n, 1, true, store_->columns, tensor_store_rows);
  }

  GemmRecipe const& recipe_;
  TensorBox a_{}, b_{};
  std::optional<TensorStore> store_;
};

plan::GroupImage image_of(GemmRecipe const& recipe, plan::GroupForm const& group, std::size_t scalars,
                          int ordinal) {
  Current const current(ordinal);  // the driver encodes tensor maps only in a context
  return plan::with_group_parameters(recipe, group.common, scalars, [&]<class Record>(Record const&) {
    return plan::group_image<Record>(
        recipe.policy, group, RecordFiller(recipe, group.common),
        [&](plan::SlotCollector& slots, Record const& record) {
          slots.add(record.a);
          slots.add(record.b);
          slots.add(record.d);
          if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(record.epilogue)>,
                                        NoEpilogueArguments>) {
            if (group.common.c.present) slots.add(record.epilogue.source);
            for (std::size_t i = 0; i < group.common.operands.size(); ++i)
              slots.add(record.epilogue.operands[i]);
            for (std::size_t i = 0; i < group.common.stores.size(); ++i) slots.add(record.epilogue.stores[i]);
            for (std::size_t i = 0; i < scalars; ++i) slots.add_place(&record.epilogue.scalars[i]);
          }
        });
  });
}

class GroupedGemm final : public Kernel<GroupedGemmProblem> {
 public:
  GroupedGemm(Plan<GroupedGemmProblem> const& plan, Function bind, Function product)
      : recipe_(plan.recipe),
        group_(plan::group_form(plan.problem)),
        image_(image_of(recipe_, group_, scalars_of(plan.problem), plan.device.gpu.ordinal)),
        scalars_(scalars_of(plan.problem)),
        ordinal_(plan.device.gpu.ordinal),
        shared_bytes_(plan::shared_storage_bytes(recipe_, group_.common)),
        bind_(std::move(bind)),
        product_(std::move(product)),
        table_(ordinal_, image_.bytes() + image_.first_tile.size() * sizeof(int)) {
    GemmPolicy const& p = recipe_.policy;
    Index const tiles = image_.first_tile.back();
    blocks_ = is_specialized(recipe_)
                  ? std::min(tiles * p.cluster(), plan::places_of_clusters(p, plan.device.gpu))
                  : tiles;
    product_.allow_shared_bytes(shared_bytes_);
    copy_to_device(ordinal_, table_.data(), image_.records(), image_.bytes(), nullptr);
    copy_to_device(ordinal_, first_tile(), image_.first_tile.data(), image_.first_tile.size() * sizeof(int),
                   nullptr);
    wait(ordinal_, nullptr);
  }

  void enqueue(GroupedGemmProblem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    if (image_.count() == 0) return;
    Current const current(ordinal_);  // set once for all driver calls below
    plan::bind_group(
        image_, table_.data(), workspace,
        [&](std::size_t problem, plan::BoundValues values) {
          write(values, group_.problems[problem], arguments.members[group_.member[problem]]);
        },
        [&](int records, BindParameters const& parameters) {
          bind_.launch({static_cast<unsigned>(records), 1, 1}, bind_threads, 0, parameters, stream);
        });
    GroupArguments const launch{workspace, first_tile(), static_cast<int>(image_.count())};
    product_.launch({static_cast<unsigned>(blocks_), 1, 1}, static_cast<unsigned>(recipe_.policy.threads()),
                    static_cast<unsigned>(shared_bytes_), launch, stream,
                    is_specialized(recipe_) ? Start::early : Start::in_order);
  }

 private:
  int* first_tile() const {
    return reinterpret_cast<int*>(static_cast<std::byte*>(table_.data()) + image_.bytes());
  }

  // Writes the values in the order of image_of().
  void write(plan::BoundValues& values, plan::CanonicalGemm const& form,
             GemmProblem::Arguments const& arguments) const {
    values.add_product(form, arguments);
    if (form.identity) return;
    if (form.c.present) values.add(arguments.c);
    for (std::size_t i = 0; i < form.operands.size(); ++i) values.add(arguments.operands[i]);
    for (std::size_t i = 0; i < form.stores.size(); ++i) values.add(arguments.stores[i]);
    for (std::size_t i = 0; i < scalars_; ++i) values.add(arguments.scalars[i]);
  }

  GemmRecipe recipe_;
  plan::GroupForm group_;
  plan::GroupImage image_;
  std::size_t scalars_;  // number of scalars in the expression
  int ordinal_;
  int shared_bytes_;
  Function bind_, product_;
  DeviceBuffer table_;  // the records and the first tiles; read-only, shared by all runs
  Index blocks_ = 0;
};

Binding binding_of(GemmRecipe const& recipe) {
  return is_specialized(recipe) ? Binding::pointers_and_maps : Binding::pointers;
}

}  // namespace

std::size_t group_workspace(GemmRecipe const& recipe, plan::GroupForm const& group,
                            GroupedGemmProblem const& problem) {
  return plan::parameter_bytes(recipe, group.common, scalars_of(problem), true) * group.problems.size();
}

jit::Source group_bind_source(Plan<GroupedGemmProblem> const& plan) {
  return bind_source(binding_of(plan.recipe), plan.device.gpu);
}

std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_grouped_gemm(Plan<GroupedGemmProblem> const& plan) {
  jit::Cubin const cubin = jit::kernel_cache().get(gemm_source(plan));
  Module const module(plan.device.gpu.ordinal, cubin.image.data());
  return std::make_unique<GroupedGemm>(plan, bind_function(binding_of(plan.recipe), plan.device.gpu),
                                       module.function(cubin.lowered_name));
}

}  // namespace cosmati::cuda
