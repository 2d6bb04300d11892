// Policies and predicted times of tiny.
#include "src/plan/gemm/small/tiny.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/gemm/invariant.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/multiplies.h"

namespace cosmati::plan {
namespace {

constexpr Index max_extent = 32, max_depth = 256;

}  // namespace

std::string tiny_violation(CanonicalGemm const& form) {
  if (form.m <= max_extent && form.n <= max_extent && form.k <= max_depth) return {};
  return fmt::format("{}x{}x{}; tiny multiplies matrices of at most {} rows and columns, and k of at most {}",
                     form.swapped ? form.n : form.m, form.swapped ? form.m : form.n, form.k, max_extent,
                     max_depth);
}

std::vector<Multiply> tiny_multiplies(CanonicalGemm const& form, Gpu const& gpu) {
  std::vector<Multiply> list;
  bool const halves = size_of(form.a.type) == 2 || form.a.type == DataType::tf32;
  if (halves && mma_violation(form, gpu).empty()) list.push_back(Multiply::mma);
  list.push_back(simple_multiply(form));
  return list;
}

std::vector<NamedPolicy> tiny_policies(Multiply multiply, DataType sum, int element_bytes) {
  return tiny_policies(multiply, sum, element_bytes, 16 / element_bytes, max_extent);
}

std::vector<NamedPolicy> tiny_policies(Multiply multiply, DataType sum, int element_bytes, int width,
                                       Index depth) {
  // The vectors of an operand that a lane has in flight: each needs registers for its address.
  constexpr int max_vectors = 8;
  std::vector<NamedPolicy> list;
  bool const mma = multiply == Multiply::mma;
  bool const wide = sum == DataType::f64;
  for (int const rows : {8, 16, 32})
    for (int const columns : {8, 16, 32}) {
      if ((mma || multiply == Multiply::half2) && (rows < 16 || columns < 16)) continue;
      GemmPolicy policy;
      policy.main_loop = MainLoop::tiny;
      policy.multiply = multiply;
      policy.block_m = policy.warp_m = rows;
      policy.block_n = policy.warp_n = columns;
      policy.thread_m = rows / 8;  // eight lanes along m, four along n, as mma.sync has them
      policy.thread_n = columns / 4;
      int const pack = pack_depth_of(multiply, element_bytes), most = wide ? 8 : 32;
      auto const vectors = [&](int k) { return std::max(rows, columns) * k / (32 * width); };
      policy.block_k = 2 * pack;
      while (!mma && policy.block_k < most && (policy.block_k < 8 || policy.block_k < depth) &&
             vectors(2 * policy.block_k) <= max_vectors)
        policy.block_k *= 2;
      if (vectors(policy.block_k) > max_vectors) continue;
      policy.stages = 1;
      policy.matrices = 8;
      bool const narrow = width * element_bytes < 16;  // single elements need registers for an address each
      policy.blocks = (rows * columns > 256 ? 2 : 3) - (narrow ? 1 : 0);
      policy.raster_width = 1;
      list.push_back({fmt::format("{}x{}", rows, columns), policy});
    }
  return list;
}

double predict_tiny(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu, int resident) {
  // Predicted, not measured.
  constexpr double launch_seconds = 2e-6, latency_seconds = 1.4e-6, share_of_memory = 0.75;
  GemmPolicy const& p = recipe.policy;
  Volume const volume = volume_of(form, recipe);
  double const bytes = volume.operand_bytes + volume.result_bytes;
  // The instructions and the latency of a warp; resident warps hide each other's latency.
  bool const mma = p.multiply == Multiply::mma;
  auto const vectors = [&](OperandAccess const& access, int outer) {
    return p.block_k * outer / (32.0 * access.width);
  };
  double const pack = p.multiply == Multiply::dp4a ? 4 : p.multiply == Multiply::half2 ? 2 : 1;
  double const products =
      mma ? p.block_m * p.block_n * p.block_k * size_of(form.a.type) / 8192.0
          : p.block_k * p.thread_m * p.thread_n / pack * (recipe.sum == DataType::f64 ? 2.0 : 1.0);
  double const reads = mma ? products : p.block_k / pack * (p.thread_m + p.thread_n) / 2.5;
  double const loads = vectors(recipe.a, p.block_m) + vectors(recipe.b, p.block_n);
  double const stored = mma ? loads : p.block_k * (p.block_m + p.block_n) / 64.0;
  double const step = 1.3 * products + reads + 6 * loads + stored + 60;
  double const stores = p.thread_m * p.thread_n * 6.0;
  double const instructions = volume.steps * step + stores + 150;
  double const warps = volume.tiles;
  double const issue = warps * instructions / (0.6 * 4 * gpu.clock_hertz * gpu.multiprocessors);
  double const at_once = static_cast<double>(gpu.multiprocessors) * resident * p.matrices;
  double const waves = std::ceil(warps / at_once);
  double const waiting = waves * latency_seconds * (volume.steps * 0.9 + 0.6);
  double const seconds = launch_seconds +
                         std::max({bytes / (share_of_memory * gpu.memory_bytes_per_second), issue}) +
                         std::max(0.0, waiting - 0.5 * issue) * 0.5 + latency_seconds;
  return recipe.sum == DataType::f64 ? 1.7 * seconds : seconds;  // measured on an H200: 21.5 us, not 12.4
}

}  // namespace cosmati::plan
