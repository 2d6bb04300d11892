// The path of each operand to wgmma: direct, repacked, or loaded by threads.
#include "src/plan/gemm/operand_paths.h"

#include <algorithm>

#include "cosmati/ops/error.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

RepackRecipe pass_of(MatrixForm const& operand, Index outer, CanonicalGemm const& form) {
  if (wgmma_takes_operand(operand, outer, form.k)) return {};
  return repack_of(operand, outer, form.k, matrices_of(operand, form), wgmma_direction(operand, form.k));
}

// One path of an operand.
struct Choice {
  RepackRecipe pass;
  bool by_threads = false, transposed = false;
};

// The paths of an operand, in order of increasing work for the main kernel.
std::vector<Choice> choices_of(MatrixForm const& operand, Index outer, CanonicalGemm const& form, bool is_a) {
  std::vector<Choice> list{{pass_of(operand, outer, form)}};
  if (list.front().pass.bytes == 0 || form.k == 0) return list;
  bool const registers = is_a && size_of(operand.type) == 4;
  OperandAccess const access = access_of(operand);
  bool const has_neighbors =
      operand.column_stride == 1 || operand.row_stride == 1 || access.width * size_of(operand.type) >= 4;
  if (is_a && through_registers(operand, outer, form.k))
    list.push_back({});  // without a copy
  else if (has_neighbors && (size_of(operand.type) == 2 || registers || access.along == Along::k))
    list.push_back({{}, true});
  else if (!is_a && size_of(operand.type) == 4 && operand.row_stride == 1)
    list.push_back({{}, true, true});
  return list;
}

}  // namespace

std::vector<OperandPath> operand_paths(GemmProblem const& problem, std::optional<bool> side) {
  std::vector<OperandPath> paths;
  bool const own = side.value_or(canonical(problem).swapped);
  for (bool const swapped : {own, !own}) {
    CanonicalGemm const form = canonical(problem, swapped);
    // A tile has at least 64 rows but may have fewer columns, so exchanging m and n wastes less of it if D
    // has few rows. Conversely, tiles of any number of columns may divide an extent among all multiprocessors
    // where 64, 128 or 192 rows do not, which matters if there are few tiles.
    constexpr Index few_rows = 64, few_elements = Index{1} << 23;
    bool const has_few_rows = form.n <= few_rows && form.m > form.n;
    bool const has_few_tiles = form.batch == 1 && form.m * form.n <= few_elements;
    bool const registers = size_of(form.a.type) == 4 && access_of(form.a).along == Along::mn;
    for (Choice const& a : choices_of(form.a, form.m, form, true))
      for (Choice const& b : choices_of(form.b, form.n, form, false)) {
        bool const by_registers = registers && a.pass.bytes == 0;
        bool const in_place = a.pass.bytes + b.pass.bytes == 0 && !a.by_threads && !b.by_threads;
        bool const gains = !side && (has_few_rows || (has_few_tiles && in_place));
        if (swapped != own && !by_registers && !gains) continue;  // no new path
        if (problem.by_pointers && !in_place) continue;
        OperandPath path{form, {}, swapped != own};
        path.form.a.by_threads = a.by_threads;
        path.form.b.by_threads = b.by_threads;
        path.form.b.transposed = b.transposed;
        path.passes.repack_a = a.pass;
        path.passes.repack_b = b.pass;
        paths.push_back(path);
      }
  }
  return paths;
}

std::string to_string(OperandPath const& path) {
  std::string text;
  auto const add = [&](char const* name, MatrixForm const& operand, RepackRecipe const& repack) {
    std::string what;
    if (repack.bytes > 0)
      what = repack.from == repack.to ? "repacked first" : "transposed first";
    else if (operand.by_threads)
      what = operand.transposed ? "transposed by threads" : "copied by threads";
    else if (size_of(operand.type) == 4 && access_of(operand).along == Along::mn)
      what = "through registers";
    if (!what.empty()) text += (text.empty() ? "" : ", ") + std::string(name) + ' ' + what;
  };
  add(path.form.swapped ? "b" : "a", path.form.a, path.passes.repack_a);
  add(path.form.swapped ? "a" : "b", path.form.b, path.passes.repack_b);
  if (text.empty()) text = "operands in place";
  return path.exchanged && !takes_registers(path) ? text + ", exchanged" : text;
}

bool takes_registers(OperandPath const& path) {
  return path.passes.repack_a.bytes == 0 && size_of(path.form.a.type) == 4 &&
         access_of(path.form.a).along == Along::mn;
}

bool is_of_kind(OperandPath const& path, std::optional<OperandKind> kind) {
  if (!kind) return true;
  bool const threads = path.form.a.by_threads || path.form.b.by_threads;
  bool const registers = takes_registers(path);
  switch (*kind) {
    case OperandKind::threads: return threads;
    case OperandKind::registers: return registers && !threads;
    case OperandKind::repacked: break;
  }
  return !threads && !registers;
}

}  // namespace cosmati::plan
