// Layout of repacked operands, and the predicted time of repacking.
#include "src/plan/gemm/repack.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cosmati/gemm/operands/row_copy_arguments.h"
#include "src/plan/buffers.h"
#include "src/plan/gemm/launch.h"

namespace cosmati::plan {
namespace {

constexpr Index unit_bytes = 16;  // the alignment of rows

double seconds_of(RepackRecipe const& repack, Gpu const& gpu) {
  if (repack.bytes == 0) return 0;
  // Measured on an H200 (docs/decisions/0004): 0.6 of the rate of a plain copy, plus a separate launch.
  constexpr double launch_seconds = 3e-6, share_of_copy = 0.6;  // including the gap between two kernels
  constexpr double row_seconds = 0.2e-9;                        // measured with 17 and 255 columns
  return launch_seconds + static_cast<double>(repack.rows_of_warps) * row_seconds +
         2.0 * static_cast<double>(repack.bytes) / (share_of_copy * gpu.memory_bytes_per_second);
}

RepackPolicy repack_policy(MatrixForm const& operand, RepackRecipe const& repack) {
  return {
      .element_bytes = size_of(operand.type), .width = repack.width, .transposed = repack.from != repack.to};
}

// Whether rows of contiguous elements that are smaller than a word remain rows: row_copy_kernel has a thread
// for each 16 bytes of them, and repack_kernel a warp for each row, however short it is.
bool copies_rows(MatrixForm const& operand, RepackRecipe const& repack) {
  Index const step = repack.from == Along::k ? operand.column_stride : operand.row_stride;
  return repack.from == repack.to && step == 1 && size_of(operand.type) <= 2;
}

}  // namespace

RepackRecipe repack_of(MatrixForm const& operand, Index outer, Index depth, Index batch, Along to) {
  RepackRecipe repack;
  OperandAccess const access = access_of(operand);
  repack.from = access.along;
  repack.to = to;
  repack.width = access.width;
  Index const unit = unit_bytes / size_of(operand.type);
  Index const line = to == Along::k ? depth : outer, lines = to == Along::k ? outer : depth;
  repack.pitch = (line + unit - 1) / unit * unit;
  repack.matrix_pitch = repack.pitch * lines;
  if (repack.from == repack.to && !copies_rows(operand, repack)) repack.rows_of_warps = lines * batch;
  auto const bytes = static_cast<std::size_t>(repack.matrix_pitch * batch * size_of(operand.type));
  repack.bytes = padded_bytes(bytes);
  return repack;
}

MatrixForm repacked(MatrixForm const& operand, RepackRecipe const& repack) {
  if (repack.bytes == 0) return operand;
  MatrixForm form;
  form.type = operand.type;
  form.row_stride = repack.to == Along::k ? repack.pitch : 1;
  form.column_stride = repack.to == Along::k ? 1 : repack.pitch;
  form.batch_stride = operand.batch_stride == 0 ? 0 : repack.matrix_pitch;
  form.alignment = buffer_alignment;
  form.present = true;
  return form;
}

std::string row_copy_traits(int element_bytes) {
  return fmt::format("cosmati::RowCopyTraits<unsigned {}>", element_bytes == 1 ? "char" : "short");
}

std::string RepackTraits::print() const {
  return fmt::format("cosmati::RepackPolicy{{.element_bytes = {}, .width = {}, .transposed = {}}}",
                     policy.element_bytes, policy.width, policy.transposed);
}

program::KernelSpec repacking_kernel(MatrixForm const& operand, RepackRecipe const& repack, bool emulated) {
  if (copies_rows(operand, repack))
    return {.headers = {"gemm/operands/row_copy.h"},
            .entry = "row_copy_kernel",
            .traits = row_copy_traits(size_of(operand.type)),
            .is_composed = false,
            .threads = RowCopyBlock::threads,
            .label = "repacking"};
  RepackPolicy policy = repack_policy(operand, repack);
  if (emulated) policy.width = policy.width >= policy.packed() ? policy.packed() : 1;
  return {.headers = {"gemm/repack.h"},
          .entry = "repack_kernel",
          .traits = RepackTraits{policy}.print(),
          .is_composed = false,
          .threads = RepackPolicy::threads,
          .shared_bytes = static_cast<unsigned>(policy.shared_bytes()),
          .label = "repacking"};
}

Index repack_tiles(MatrixForm const& operand, RepackRecipe const& repack, Index outer, Index depth) {
  Index const rows = repack.from == Along::k ? outer : depth, columns = outer + depth - rows;
  if (copies_rows(operand, repack)) return RowCopyBlock::blocks(rows, repack.pitch, size_of(operand.type));
  RepackPolicy const policy = repack_policy(operand, repack);
  Index const tile_rows = policy.rows(), tile_columns = policy.columns();
  return (rows + tile_rows - 1) / tile_rows * ((columns + tile_columns - 1) / tile_columns);
}

RepackParameters repack_parameters(MatrixForm const& operand, RepackRecipe const& repack, Index outer,
                                   Index depth, void const* data, std::byte* workspace) {
  bool const along_depth = repack.from == Along::k;
  RepackParameters parameters;
  parameters.from = matrix_arguments(operand, data);
  if (!along_depth) std::swap(parameters.from.row_stride, parameters.from.column_stride);
  parameters.to = workspace + repack.offset;
  parameters.rows = along_depth ? outer : depth;
  parameters.columns = along_depth ? depth : outer;
  parameters.pitch = repack.pitch;
  parameters.matrix_pitch = repack.matrix_pitch;
  return parameters;
}

CanonicalGemm repacked(CanonicalGemm form, GemmRecipe const& recipe) {
  form.a = repacked(form.a, recipe.repack_a);
  form.b = repacked(form.b, recipe.repack_b);
  return form;
}

double predict_repack(GemmRecipe const& recipe, Gpu const& gpu) {
  return seconds_of(recipe.repack_a, gpu) + seconds_of(recipe.repack_b, gpu);
}

}  // namespace cosmati::plan
