// Matrix products by oneDNN's matmul primitive.
#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/post_ops.h"
#include "src/backend/cpu/onednn/recipe.h"
#include "src/ops/number_types.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = GemmProblem::Arguments;

bool is_float(DataType type) { return type == DataType::f32 || type == DataType::bf16; }

std::string violates_operands(GemmProblem const& problem, Device const& device) {
  DataType const a = problem.a.type, b = problem.b.type;
  std::string const types = std::string("a is ") + name_of(a) + ", b is " + name_of(b);
  if (is_float(a) && a == b) {
    if (a == DataType::bf16 && !device.avx512_bf16)
      return types + "; oneDNN's bf16 products need AVX-512 BF16, which this processor lacks";
    return {};
  }
  if (is_int8(a) && is_int8(b) && (a == DataType::s8 || b == DataType::s8)) {
    if (!device.avx512_vnni)
      return types +
             "; 8-bit products need AVX-512 VNNI, which this processor lacks: oneDNN would saturate sums";
    return {};
  }
  return types + "; oneDNN multiplies f32 by f32, bf16 by bf16, s8 by s8, u8 by s8 and s8 by u8";
}

std::string violates_depth(GemmProblem const& problem, Device const&) {
  return problem.k() > 0 ? "" : "k is 0; it must be at least 1";
}

// True for matrices that oneDNN supports: one of the two strides is 1, and the other is at least the length
// of a row or column.
bool is_plain(TensorDescription const& t) {
  Layout const& l = t.layout;
  auto const rows = [&](int row, int column) {
    return (l.stride[column] == 1 || l.extent(column) == 1) &&
           (l.stride[row] >= l.extent(column) || l.extent(row) == 1);
  };
  return rows(1, 2) || rows(2, 1);
}

// Replaces the strides of extents of 1, so that oneDNN recognizes the layout.
TensorDescription cleaned(TensorDescription t) {
  Layout& l = t.layout;
  for (int i : {1, 2}) {
    int const other = 3 - i;
    if (l.extent(i) == 1) l.stride[i] = l.stride[other] == 1 ? l.extent(other) : 1;
  }
  return t;
}

// The descriptor (batch, rows, columns), without the batch dimension if the batch is 1; an operand shared by
// all matrices has batch extent 1.
Descriptor matrix(TensorDescription const& description, Kind kind, Index batch) {
  TensorDescription const t = cleaned(description);
  Layout const& l = t.layout;
  if (batch == 1) return {{l.extent(1), l.extent(2)}, kind, {l.stride[1], l.stride[2]}};
  bool const shared = l.stride[0] == 0;
  Index const step = shared ? std::max(l.stride[1] * l.extent(1), l.stride[2] * l.extent(2)) : l.stride[0];
  return {{shared ? 1 : batch, l.extent(1), l.extent(2)}, kind, {step, l.stride[1], l.stride[2]}};
}

Descriptor dense(Descriptor const& like, Kind kind) {
  auto const extents = like.dims();
  return extents.size() == 2 ? Descriptor(extents, kind, Tag::ab) : Descriptor(extents, kind, Tag::abc);
}

TensorDescription transposed(TensorDescription t) {
  if (t.present()) t.layout = t.layout.permuted(0, 2, 1);
  return t;
}

// True if the epilogue reads an array that may alias d.
bool reads_whole_arrays(Epilogue const& epilogue) {
  if (epilogue.expression.uses_source()) return true;
  for (auto const& operand : epilogue.expression.operands())
    if (operand.indices.size() > 1) return true;
  return false;
}

// True if repacking b into oneDNN's blocks pays off: b is large and is reused for many rows of a.
bool worth_packing(GemmProblem const& problem) {
  return problem.batch() == 1 && problem.m() >= 1024 && problem.n() * problem.k() >= (Index{1} << 21);
}

// The features that an attempt uses; the next attempt drops one if oneDNN would fall back to its reference
// loops.
struct Attempt {
  bool fuse;   // epilogue as post-operations
  bool plain;  // matrices in their own layouts, without dense copies
};

// The bias of the post-operations, if they have one: the last dimension of the result.
Descriptor bias_of(PostOps const& post, Descriptor const& result) {
  if (post.bias < 0) return {};
  auto extents = result.dims();
  for (std::size_t d = 0; d + 1 < extents.size(); ++d) extents[d] = 1;
  return {extents, Kind::f32, extents.size() == 2 ? Tag::ab : Tag::abc};
}

// Applies the epilogue to the sums after the product. `sums`: where they are, if not in d.
void add_tail(Recipe<GemmProblem>& recipe, GemmProblem const& problem, Device const& device, bool swapped,
              std::optional<Program::Slot> sums) {
  bool const integers = is_int8(problem.a.type);
  TensorDescription accumulator{integers ? DataType::s32 : DataType::f32, problem.d.layout};
  if (sums) {
    accumulator.layout = row_major((swapped ? transposed(problem.d) : problem.d).shape());
    if (swapped) accumulator.layout = accumulator.layout.permuted(0, 2, 1);
  }
  recipe.result = [](Arguments const& run, int) -> void const* { return run.d; };
  recipe.source = [](Arguments const& run, int) { return run.c; };
  recipe.tail.emplace(Tail{Pointwise(epilogue_pointwise(problem.epilogue, epilogue::gemm_indices, accumulator,
                                                        problem.c, problem.d, integers),
                                     device.threads),
                           sums});
}

// d = a * b, or, where the columns of d are contiguous, d^T = b^T * a^T.
Recipe<GemmProblem> build_attempt(GemmProblem const& problem, Device const& device, Attempt attempt) {
  Recipe<GemmProblem> recipe;
  Index const batch = problem.batch();
  bool const integers = is_int8(problem.a.type);
  bool const swapped =
      (problem.d.layout.stride[2] != 1 && problem.n() > 1 && problem.d.layout.stride[1] == 1) ||
      (integers && problem.b.type == DataType::u8);
  TensorDescription const left = swapped ? transposed(problem.b) : problem.a;
  TensorDescription const right = swapped ? transposed(problem.a) : problem.b;
  TensorDescription const target = swapped ? transposed(problem.d) : problem.d;

  auto& program = recipe.program;
  auto const operand = [&](TensorDescription const& t, bool is_a) {
    Descriptor const given = matrix(t, kind_of(t.type), batch);
    auto const slot = recipe.argument(
        is_a ? +[](Arguments const& run, int) { return run.a; }
             : +[](Arguments const& run, int) { return run.b; },
        given);
    return is_plain(t) && attempt.plain ? slot : program.reordered(slot, dense(given, given.data_type()));
  };
  auto const source = operand(left, !swapped);
  auto weights = operand(right, swapped);

  auto post = integers || !attempt.fuse
                  ? std::nullopt
                  : match_post_ops(problem.epilogue, swapped ? "m" : "n", swapped ? problem.m() : problem.n(),
                                   batch == 1 ? 2 : 3, batch == 1 ? 1 : 2);
  // oneDNN derives an element's channel from its offset and assumes that there are no gaps.
  if (post && !post->operands.empty() && !target.layout.is_row_major()) post.reset();
  bool const is_accumulator = problem.epilogue.expression == epilogue::Expression();
  Kind const sum = integers ? Kind::s32 : Kind::f32;
  bool const direct_type = kind_of(target.type) == sum ||
                           (!integers && target.type == DataType::bf16 && problem.a.type == DataType::bf16);
  bool const direct_place = attempt.plain && is_plain(target) &&
                            (target.layout.stride[2] == 1 || target.extent(2) == 1) &&
                            !target.layout.overlaps();
  bool const finished = direct_type && direct_place && (is_accumulator || post);
  if (!finished) post.reset();
  bool const in_place = direct_place && kind_of(target.type) == sum && !reads_whole_arrays(problem.epilogue);

  Descriptor const result = matrix(target, kind_of(target.type), batch);
  Descriptor const given = finished || in_place ? result : dense(result, sum);
  auto const destination =
      finished || in_place
          ? recipe.argument([](Arguments const& run, int) -> void const* { return run.d; }, given)
          : program.temporary(given);

  auto attributes = user_scratchpad();
  if (post) attributes.set_post_ops(post->operations);
  Descriptor const bias = post ? bias_of(*post, given) : Descriptor();
  bool const pack = worth_packing(problem) && !integers;
  Descriptor const weights_wanted = pack ? any_layout(program.memory(weights)) : program.memory(weights);
  auto const description = bias ? dnnl::matmul::desc(program.memory(source), weights_wanted, bias, given)
                                : dnnl::matmul::desc(program.memory(source), weights_wanted, given);
  dnnl::matmul::primitive_desc const primitive(description, attributes, engine());
  if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for these strides");
  weights = program.reordered(weights, primitive.weights_desc());
  std::vector<Program::Binding> bindings{
      {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, destination}};
  if (post) bind_post_ops(recipe, *post, bias, bindings);
  program.add(primitive, bindings);
  if (!finished)
    add_tail(recipe, problem, device, swapped, in_place ? std::nullopt : std::optional(destination));
  return recipe;
}

Recipe<GemmProblem> build_matmul(GemmProblem const& problem, Device const& device) {
  for (Attempt attempt : {Attempt{true, true}, Attempt{false, true}}) {
    try {
      return build_attempt(problem, device, attempt);
    } catch (Unsupported const&) {
    } catch (dnnl::error const&) {
    }
  }
  return build_attempt(problem, device, {false, false});
}

}  // namespace

bool matmul_applies_epilogue(GemmProblem const& problem, Device const& device) {
  auto const alone = one_maker_at_a_time();
  try {
    return !build_attempt(problem, device, {true, true}).tail;
  } catch (Unsupported const&) {
  } catch (dnnl::error const&) {
  }
  return false;
}

Candidate<GemmProblem> matmul_candidate() {
  return recipe_candidate<GemmProblem, build_matmul>("onednn_matmul",
                                                     {{violates_operands}, {violates_depth}});
}

}  // namespace cosmati::cpu::onednn
