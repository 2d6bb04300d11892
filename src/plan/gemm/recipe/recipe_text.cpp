// Prints a recipe as text.
#include <fmt/format.h>

#include "cosmati/ops/convolution_recipe.h"
#include "cosmati/ops/recipe_terms.h"

namespace cosmati {

std::string policy_text(GemmRecipe const& recipe) {
  GemmPolicy const& p = recipe.policy;
  return fmt::format("{}{}x{}x{}", recipe.policy_name.empty() ? "" : recipe.policy_name + ' ', p.block_m,
                     p.block_n, p.block_k);
}

std::string to_string(GemmRecipe const& recipe) {
  GemmPolicy const& p = recipe.policy;
  auto const passes = [&] {
    std::string text;
    for (bool is_a : {true, false}) {
      RepackRecipe const& repack = is_a ? recipe.repack_a : recipe.repack_b;
      if (repack.bytes == 0) continue;
      text += fmt::format("{} {} first, ", is_a ? 'a' : 'b',
                          repack.from == repack.to ? "repacked" : "transposed");
    }
    return text;
  };
  // Describes the cluster or the number of resident blocks.
  auto const company = [&p] {
    std::string text;
    if (p.cluster_m * p.cluster_n > 1) text += fmt::format("cluster {}x{}, ", p.cluster_m, p.cluster_n);
    if (p.cluster_k > 1) text += fmt::format("{} blocks of a cluster share a tile's k, ", p.cluster_k);
    if (p.ping_pong) text += "two alternating tiles, ";
    if (p.blocks > 1) text += fmt::format("{} blocks per multiprocessor, ", p.blocks);
    return text;
  };
  auto const division = [&] {
    if (p.partition == Partition::split_k_parallel)
      return fmt::format("{} splits, added by another kernel", recipe.splits);
    if (p.partition != Partition::stream_k) return fmt::format("{} splits", recipe.splits);
    return fmt::format("stream-K: the steps of the first {} tiles in {} equal ranges", recipe.streamed,
                       recipe.stream_blocks);
  };
  auto const access = [](OperandAccess const& operand, char const* outer) {
    return fmt::format("{} by {}{}", operand.along == Along::k ? "k" : outer, operand.width,
                       operand.transposed   ? " transposed by threads"
                       : operand.by_threads ? " by threads"
                                            : "");
  };
  bool const by_registers = p.multiply == Multiply::wgmma && p.block_k == 32 && recipe.a.along == Along::mn;
  return fmt::format(
      "{}, warp {}x{}, thread {}x{}, {} stages, {}, {}{} epilogue, raster {} by {}, {}{}{}"
      "a along {}{}, b along {}, d by {}, {}",
      policy_text(recipe), p.warp_m, p.warp_n, p.thread_m, p.thread_n, p.stages, name_of(p.multiply),
      company(), name_of(p.epilogue), name_of(p.raster), p.raster_width, p.full_tiles ? "full tiles, " : "",
      recipe.swapped ? "transposed, " : "", passes(), access(recipe.a, "m"),
      by_registers ? " through registers" : "", access(recipe.b, "n"), recipe.result_width, division());
}

std::vector<RecipeTerm> terms_of(GemmRecipe const& recipe) {
  GemmPolicy const& p = recipe.policy;
  std::vector<RecipeTerm> terms{RecipeTerm::tile};
  auto const add = [&terms](bool present, RecipeTerm term) {
    if (present) terms.push_back(term);
  };
  add(p.cluster_m * p.cluster_n > 1, RecipeTerm::cluster);
  add(p.cluster_k > 1, RecipeTerm::cluster_reduction);
  add(p.ping_pong, RecipeTerm::ping_pong);
  add(true, RecipeTerm::raster);
  add(p.full_tiles, RecipeTerm::full_tiles);
  add(recipe.swapped, RecipeTerm::swapped);
  for (RepackRecipe const* pass : {&recipe.repack_a, &recipe.repack_b})
    add(pass->bytes > 0, pass->from == pass->to ? RecipeTerm::repacked : RecipeTerm::transposed_first);
  add(true, RecipeTerm::access);
  add(p.partition != Partition::stream_k, RecipeTerm::splits);
  return terms;
}

std::vector<RecipeTerm> terms_of(ConvolutionRecipe const& recipe) {
  bool const multiplies = recipe.multiplies_matrices() && !std::holds_alternative<SlicesRecipe>(recipe.own);
  std::vector<RecipeTerm> terms;
  if (multiplies) terms = terms_of(recipe.product);
  if (recipe.algorithm == ConvolutionAlgorithm::winograd) terms.push_back(RecipeTerm::winograd_tile);
  return terms;
}

}  // namespace cosmati
