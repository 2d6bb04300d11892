// The path of each operand to wgmma: direct, repacked, or loaded by threads.
#include "src/plan/gemm/ways.h"

#include <algorithm>

#include "cosmati/ops/error.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

RepackRecipe pass_of(MatrixForm const& operand, Index outer, CanonicalGemm const& form) {
  // Matrices by pointers have one tensor map each.
  if (wgmma_takes_operand(operand, outer, form.k, form.by_pointers ? 1 : form.batch)) return {};
  return repack_of(operand, outer, form.k, form.batch, wgmma_direction(operand, form.k));
}

// One path of an operand.
struct Choice {
  RepackRecipe pass;
  bool by_threads = false;
};

// The paths of an operand, in order of increasing work for the main kernel.
std::vector<Choice> choices_of(MatrixForm const& operand, Index outer, CanonicalGemm const& form, bool is_a) {
  std::vector<Choice> list{{pass_of(operand, outer, form)}};
  if (list.front().pass.bytes == 0 || form.k == 0) return list;
  bool const registers = is_a && size_of(operand.type) == 4;
  OperandAccess const access = access_of(operand);
  bool const has_neighbours =
      operand.column_stride == 1 || operand.row_stride == 1 || access.width * size_of(operand.type) >= 4;
  if (is_a && through_registers(operand, outer, form.k, form.by_pointers ? 1 : form.batch))
    list.push_back({});  // without a copy
  else if (has_neighbours && (size_of(operand.type) == 2 || registers || access.along == Along::depth))
    list.push_back({{}, true});
  return list;
}

}  // namespace

std::vector<OperandWay> operand_ways(GemmProblem const& problem, std::optional<bool> side) {
  std::vector<OperandWay> ways;
  bool const own = side.value_or(canonical(problem).swapped);
  for (bool const swapped : {own, !own}) {
    CanonicalGemm const form = canonical(problem, swapped);
    bool const registers = size_of(form.a.type) == 4 && access_of(form.a).along == Along::outer;
    for (Choice const& a : choices_of(form.a, form.m, form, true))
      for (Choice const& b : choices_of(form.b, form.n, form, false)) {
        if (swapped != own && !(registers && a.pass.bytes == 0)) continue;  // nothing new in this order
        OperandWay way{form, {}};
        way.form.a.by_threads = a.by_threads;
        way.form.b.by_threads = b.by_threads;
        way.passes.repack_a = a.pass;
        way.passes.repack_b = b.pass;
        ways.push_back(way);
      }
  }
  return ways;
}

std::string to_string(OperandWay const& way) {
  std::string text;
  auto const add = [&](char const* name, MatrixForm const& operand, RepackRecipe const& repack) {
    std::string what;
    if (repack.bytes > 0)
      what = repack.from == repack.to ? "repacked first" : "transposed first";
    else if (operand.by_threads)
      what = "copied by threads";
    else if (size_of(operand.type) == 4 && access_of(operand).along == Along::outer)
      what = "through registers";
    if (!what.empty()) text += (text.empty() ? "" : ", ") + std::string(name) + ' ' + what;
  };
  add(way.form.swapped ? "b" : "a", way.form.a, way.passes.repack_a);
  add(way.form.swapped ? "a" : "b", way.form.b, way.passes.repack_b);
  return text.empty() ? "operands in place" : text;
}

bool takes_registers(OperandWay const& way) {
  return way.passes.repack_a.bytes == 0 && size_of(way.form.a.type) == 4 &&
         access_of(way.form.a).along == Along::outer;
}

bool is_of_kind(OperandWay const& way, std::optional<OperandKind> kind) {
  if (!kind) return true;
  bool const threads = way.form.a.by_threads || way.form.b.by_threads;
  bool const registers = takes_registers(way);
  switch (*kind) {
    case OperandKind::threads: return threads;
    case OperandKind::registers: return registers && !threads;
    case OperandKind::repacked: break;
  }
  return !threads && !registers;
}

}  // namespace cosmati::plan
