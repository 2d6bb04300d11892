// The layout of the parts of a split-K product, and the predicted time of adding them.
#include "src/plan/gemm/sum_of_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

constexpr Index sums_of_vector = 4;  // 16 bytes of f32

Index pitch_of_parts(CanonicalGemm const& form) {
  return ceiling_divide(form.n, sums_of_vector) * sums_of_vector;
}

}  // namespace

CanonicalGemm kernel_form(CanonicalGemm const& form, Partition partition) {
  if (partition != Partition::split_k_parallel) return form;
  CanonicalGemm parts = form;
  parts.d = {};
  parts.d.type = form.sum == DataType::s32 ? DataType::s32 : DataType::f32;
  parts.d.row_stride = pitch_of_parts(form);
  parts.d.column_stride = 1;
  parts.d.batch_stride = form.m * parts.d.row_stride;
  parts.d.alignment = 256;
  parts.d.width = to_int(sums_of_vector);
  parts.d.present = true;
  parts.c = {};
  parts.operands.clear();
  parts.stores.clear();
  parts.identity = true;
  parts.evaluation = parts.d.type;
  return parts;
}

std::size_t bytes_of_parts(CanonicalGemm const& form, int splits) {
  return static_cast<std::size_t>(form.batch * splits * form.m * pitch_of_parts(form)) * 4;
}

SumOfPartsBlock sum_of_parts_block(GemmRecipe const& recipe) {
  constexpr int parts_of_thread = 8;
  SumOfPartsBlock block;
  while (block.groups < 8 && recipe.splits > parts_of_thread * block.groups) block.groups *= 2;
  return block;
}

std::string SumOfPartsTraits::print() const {
  return fmt::format("SumOfPartsTraits<SumOfPartsBlock{{.groups = {}}}, {}, {}, {}>", block.groups,
                     name_of(sum), epilogue, destination);
}

double predict_sum_of_parts(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu) {
  if (!adds_parts(recipe)) return 0;
  // Predicted, not measured: the kernel is launched while the main one runs, loads parts mostly from the L2
  // cache, eight at a time, and stores the result.
  constexpr double launch_seconds = 1.6e-6, latency_seconds = 1e-6, parts_at_once = 8;
  double const rounds = std::ceil(recipe.splits / (parts_at_once * sum_of_parts_block(recipe).groups));
  double const bytes = static_cast<double>(bytes_of_parts(form, recipe.splits));
  // A thread's sums are in one row of D; if D is M-major, they are stored one by one (192x1500 and 5376x257
  // by 12 policies on an H200: 44 and 57 elements per ns).
  bool const one_by_one = direction_of_result(form) == Along::mn;
  double const elements = static_cast<double>(form.batch * form.m * form.n);
  return launch_seconds + rounds * latency_seconds + bytes / (0.7 * gpu.memory_bytes_per_second) +
         (one_by_one ? elements / 50e9 : 0);
}

}  // namespace cosmati::plan
