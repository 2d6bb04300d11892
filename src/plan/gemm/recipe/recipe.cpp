// Recipes of products before a search among policies, and the requirements of complete ones.
#include "src/plan/gemm/recipe/recipe.h"

#include <fmt/format.h>

#include "cosmati/tile/tensor_box.h"
#include "src/plan/gemm/invariant.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/multiplies.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/small/tiny.h"
#include "src/plan/gemm/sum_of_parts.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/gemm/warp_specialized_f64.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

// Empty, or the reason why blocks of a cluster cannot load their shares of a step by pointers: a box that
// begins beyond k, which a map of addresses does not support (AddressedTensors).
std::string shares_violation(GemmRecipe const& recipe, CanonicalGemm const& form) {
  if (!form.by_pointers || form.k % recipe.policy.block_k == 0) return {};
  struct Operand {
    char const* name;
    Along along;
    int outer, blocks;
  };
  GemmPolicy const& p = recipe.policy;
  for (Operand const& one : {Operand{form.swapped ? "b" : "a", recipe.a.along, p.block_m, p.cluster_n},
                             Operand{form.swapped ? "a" : "b", recipe.b.along, p.block_n, p.cluster_m}}) {
    TensorBox const box = tensor_box(one.along, size_of(form.a.type), p.block_k, one.outer, one.blocks);
    if (one.along == Along::mn ? !box.by_boxes : box.boxes > 1)
      return fmt::format(
          "by pointers: {} blocks share a step of {}, and a part of the last may begin beyond k = {}",
          one.blocks, one.name, form.k);
  }
  return {};
}

}  // namespace

CanonicalGemm form_for(MainLoop main_loop, GemmProblem const& problem, std::optional<bool> side) {
  return canonical(problem, main_loop == MainLoop::gemv ? gemv_side(problem) : side);
}

GemmRecipe recipe_for(MainLoop main_loop, CanonicalGemm const& form) {
  GemmRecipe recipe;
  recipe.swapped = form.swapped;
  bool const streams = main_loop == MainLoop::gemv;
  recipe.a = streams ? gemv_access(form.a, true, form.m) : access_of(form.a);
  recipe.b = access_of(form.b);
  recipe.result_width = form.d.width;
  recipe.sum = form.sum;
  return recipe;
}

std::size_t workspace_of(GemmRecipe const& recipe) {
  std::size_t const parts = recipe.partial_bytes + recipe.flag_bytes;
  std::size_t const copies = recipe.repack_a.bytes + recipe.repack_b.bytes;
  return copies == 0 ? parts : recipe.repack_a.offset + copies;
}

std::string form_violation(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu) {
  std::string sentence = policy_violation(recipe.policy, form.a.type, form.b.type, form.sum);
  if (!sentence.empty()) return sentence;
  int const shared = shared_storage_bytes(recipe, form);
  if (shared > gpu.shared_bytes_per_block)
    return fmt::format("needs {} bytes of shared memory per block; {} has {}", shared, gpu.name,
                       gpu.shared_bytes_per_block);
  if ((recipe.a.by_threads || recipe.b.by_threads) && recipe.policy.cluster_m * recipe.policy.cluster_n > 1)
    return fmt::format(
        "blocks of a cluster of {}x{} share tiles loaded by TMA, but threads load an operand; it "
        "must be 1x1",
        recipe.policy.cluster_m, recipe.policy.cluster_n);
  if (recipe.policy.main_loop == MainLoop::warp_specialized)
    sentence = slices_violation(recipe.policy, recipe.a.along, recipe.b.along, size_of(form.a.type));
  if (sentence.empty() && recipe.policy.multiply == Multiply::wgmma) {
    sentence = columns_violation(recipe.policy, recipe.b.along, size_of(form.b.type));
    if (sentence.empty()) sentence = shares_violation(recipe, form);
  }
  if (!sentence.empty()) return sentence;
  Index const tiles = tiles_of(recipe.policy, form);
  if (tiles > max_int) return fmt::format("{} tiles; a grid has at most 2147483647", tiles);
  return {};
}

std::string measured_violation(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu) {
  GemmPolicy const& p = recipe.policy;
  std::string sentence = form_violation(recipe, kernel_form(form, p.partition), gpu);
  if (sentence.empty() && p.multiply == Multiply::wgmma) sentence = wgmma_violation(form, gpu);
  if (sentence.empty() && p.multiply == Multiply::mma)
    sentence = p.main_loop == MainLoop::warp_specialized ? specialized_f64_violation(form, gpu)
                                                         : mma_violation(form, gpu);
  if (sentence.empty() && p.multiply == Multiply::wmma) sentence = wmma_violation(form, gpu);
  bool const by_tensor_cores =
      p.multiply == Multiply::wgmma || p.multiply == Multiply::mma || p.multiply == Multiply::wmma;
  if (sentence.empty() && p.main_loop == MainLoop::gemv) sentence = gemv_violation(form);
  if (sentence.empty() && p.main_loop == MainLoop::tiny) sentence = tiny_violation(form);
  if (sentence.empty() && !by_tensor_cores && p.main_loop != MainLoop::gemv &&
      p.multiply != simple_multiply(form))
    sentence = fmt::format("multiply {} does not support these types", name_of(p.multiply));
  if (sentence.empty()) sentence = partition_violation(recipe, {p.partition, recipe.splits}, form);
  return sentence;
}

}  // namespace cosmati::plan
