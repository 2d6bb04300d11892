// Divides a recipe among blocks, places its workspace, and predicts its time.
#include "src/plan/gemm/recipe/finish.h"

#include <algorithm>

#include "src/plan/buffers.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/recipe/recipe.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/sum_of_parts.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {

void finalize_recipe(GemmRecipe& recipe, KPartition const& k_partition, CanonicalGemm const& form,
                     Device const& device, Volume const& volume) {
  Gpu const& gpu = device.gpu;
  GemmPolicy& p = recipe.policy;
  bool const emulated = device.backend == Backend::emulator;
  divide(recipe, k_partition, form,
         emulated ? emulator::emulated_resident_blocks : resident_blocks(recipe, form, gpu));
  p.full_tiles = form.m % (p.block_m * p.cluster_m) == 0 && form.n % (p.block_n * p.cluster_n) == 0 &&
                 form.k % p.block_k == 0;
  // With results stored by TMA, the kernel distinguishes complete tiles itself.
  if (p.full_tiles && p.multiply == Multiply::wgmma && !emulated)
    p.full_tiles = !stores_by_tma(p, kernel_form(form, p.partition));
  // A shifted load touches up to 16 bytes beyond its vector.
  if (p.main_loop == MainLoop::gemv &&
      (gemv_shifts(form.a, true, form.m) || gemv_shifts(form.b, false, form.n)))
    p.full_tiles = false;
  std::size_t const after = padded_bytes(recipe.partial_bytes + recipe.flag_bytes);
  recipe.repack_a.offset = after;
  recipe.repack_b.offset = after + recipe.repack_a.bytes;
  double const product = p.partition == Partition::split_k_parallel
                             ? predict_seconds(recipe, kernel_form(form, p.partition), gpu)
                             : predict_seconds(recipe, form, gpu, volume);
  recipe.predicted_seconds = product + predict_repack(recipe, gpu) + predict_sum_of_parts(recipe, form, gpu);
}

void finalize_recipe(GemmRecipe& recipe, GroupForm const& group, Gpu const& gpu) {
  GemmPolicy& p = recipe.policy;
  p.full_tiles = std::all_of(group.problems.begin(), group.problems.end(), [&](CanonicalGemm const& form) {
    return form.m % (p.block_m * p.cluster_m) == 0 && form.n % (p.block_n * p.cluster_n) == 0 &&
           form.k % p.block_k == 0;
  });
  p.partition = Partition::tiles;
  recipe.predicted_seconds = predict_seconds(recipe, group.common, gpu, volume_of(group, recipe));
}

std::string store_parts(GemmRecipe& recipe, CanonicalGemm const& form, Device const& device,
                        bool has_schedule) {
  CanonicalGemm const parts = kernel_form(form, Partition::split_k_parallel);
  if (!has_schedule && device.backend != Backend::emulator) {
    recipe.policy.epilogue = EpilogueSchedule::direct;
    if (!stores_by_tma(recipe.policy, parts)) recipe.policy.epilogue = EpilogueSchedule::staged;
  }
  return form_violation(recipe, parts, device.gpu);
}

}  // namespace cosmati::plan
