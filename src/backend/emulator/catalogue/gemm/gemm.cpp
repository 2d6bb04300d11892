// Finds the catalogue entry that computes a plan, and runs it.
#include "src/backend/emulator/catalogue/entries.h"

#include <algorithm>

#include "cosmati/epilogue/parse.h"
#include "src/backend/emulator/catalogue/gemm/gemm_catalogue.h"
#include "src/backend/emulator/catalogue/gemm/gemm_pointers.h"
#include "src/backend/emulator/catalogue/gemm/gemm_warp_specialized.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/gemm/launch.h"
#include "src/program/launch_tag.h"

namespace cosmati::emulator {
namespace {

// Converts the full range from the first to the last element, including gaps, so that strides stay the same.
void widen(TensorDescription const& from, void const* data, DataType type, void* to) {
  for (Index i = 0; i < from.layout.span(); ++i) store(type, to, i, load(from.type, data, i));
}

CatalogueEntry find(KernelTypes types, GemmRecipe const& recipe, Variant const& variant) {
  if (recipe.policy.partition == Partition::stream_k) return find_f32_stream_k(variant.a, variant.b);
  if (recipe.policy.multiply == Multiply::mma) return find_mma(types.a, types.b, recipe.sum, variant);
  if (recipe.policy.multiply == Multiply::wmma) return find_wmma(types.a, recipe.sum, variant);
  switch (types.a) {
    case DataType::f64: return find_f64(variant);
    case DataType::f16: return recipe.sum == DataType::f16 ? find_f16_half2(variant) : find_f16(variant);
    case DataType::s8:
    case DataType::u8: return find_bytes(types.a, types.b, variant);
    case DataType::s32: return find_s32(variant);
    default: return find_f32(variant);
  }
}

class EmulatedGemm final : public Kernel<GemmProblem> {
 public:
  explicit EmulatedGemm(Plan<GemmProblem> const& plan)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        form_(plan::canonical(plan.problem, plan.recipe.swapped)),
        types_(kernel_types(form_.a.type, form_.b.type, plan.recipe.sum, plan.recipe.policy.multiply)),
        threads_(plan.device.threads) {
    int const full = 16 / size_of(types_.a);
    entry_ = find(types_, recipe_,
                  {recipe_.policy.main_loop, recipe_.a.along, recipe_.b.along,
                   recipe_.a.width >= full && recipe_.b.width >= full});
  }

  void enqueue(GemmProblem::Arguments const& arguments, std::byte* workspace, Stream) const override {
    if (form_.m == 0 || form_.n == 0 || form_.batch == 0) return;
    std::byte* free = workspace + recipe_.flag_bytes + recipe_.partial_bytes;
    void const* const a = as_kernel_type(problem_.a, arguments.a, form_.swapped ? types_.b : types_.a, free);
    void const* const b = as_kernel_type(problem_.b, arguments.b, form_.swapped ? types_.a : types_.b, free);
    reference::ElementEpilogue const expression(problem_.epilogue, epilogue::gemm_indices, arguments.operands,
                                                arguments.scalars, arguments.stores);

    HostGemmParameters parameters;
    plan::fill_product(parameters, form_, recipe_, a, b, workspace);
    fill_result(parameters, problem_, form_, expression, arguments);
    auto const whole = plan::grid_of(recipe_, form_);
    for (Index first = 0; first < form_.batch; first += whole.most_batch) {
      parameters.schedule.tag = fresh_launch_tag();
      parameters.schedule.first_batch = first;
      parameters.schedule.batch = std::min<Index>(whole.most_batch, form_.batch - first);
      Grid const grid{static_cast<int>(whole.tiles), static_cast<int>(whole.splits),
                      static_cast<int>(whole.z(parameters.schedule.batch))};
      entry_.launch(grid, parameters, threads_);
    }
  }

 private:
  void const* as_kernel_type(TensorDescription const& tensor, void const* data, DataType type,
                             std::byte*& free) const {
    if (tensor.type == type) return data;
    void* const to = free;
    widen(tensor, data, type, to);
    free += padded_bytes(tensor.layout.span() * size_of(type));
    return to;
  }

  GemmProblem problem_;
  GemmRecipe recipe_;
  plan::CanonicalGemm form_;
  KernelTypes types_;  // data types of a and b in the kernel
  int threads_;
  CatalogueEntry entry_;
};

}  // namespace

std::unique_ptr<Kernel<GemmProblem>> prepare_gemm(Plan<GemmProblem> const& plan) {
  if (plan.recipe.policy.main_loop == MainLoop::warp_specialized)
    return plan.problem.by_pointers ? prepare_pointers(plan) : prepare_warp_specialized(plan);
  return std::make_unique<EmulatedGemm>(plan);
}

}  // namespace cosmati::emulator
