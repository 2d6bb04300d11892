// Matrix products on the cpu backend against the reference.
#include "cosmati/ops/gemm.h"

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/processor.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using test::Bound;
using test::Choice;
using test::Trial;
using test::Values;

Device cpu(int threads = 2) { return this_device(Backend::cpu, threads); }

GemmProblem make_problem(DataType a, DataType b, DataType d, Index batch, Index m, Index n, Index k) {
  GemmProblem problem;
  problem.a = describe(a, Shape{batch, m, k});
  problem.b = describe(b, Shape{batch, k, n});
  problem.d = describe(d, Shape{batch, m, n});
  return problem;
}

void set_epilogue(GemmProblem& problem, char const* text, Choice& choice) {
  problem.epilogue.expression = epilogue::parse(text);
  for (auto const& operand : problem.epilogue.expression.operands()) {
    Shape shape;
    for (auto const& letter : operand.indices)
      shape.extent[shape.rank++] = letter == "batch" ? problem.batch()
                                   : letter == "m"   ? problem.m()
                                                     : problem.n();
    problem.epilogue.operands.push_back(
        describe(choice.of({DataType::f32, DataType::f32, DataType::bf16}), choice.layout(shape)));
  }
  for (std::size_t i = 0; i < problem.epilogue.expression.stores().size(); ++i)
    problem.epilogue.stores.push_back(describe(DataType::f32, choice.layout(problem.d.shape())));
  if (problem.epilogue.expression.uses_source()) problem.c = describe(problem.d.type, problem.d.shape());
}

// A stack of matrices with contiguous rows or columns, sometimes with a larger leading dimension.
Layout matrices(Choice& choice, Shape const& shape) {
  bool const by_rows = choice.heads();
  int const inner = by_rows ? 2 : 1, outer = by_rows ? 1 : 2;
  Layout layout{shape, {}};
  layout.stride[inner] = 1;
  layout.stride[outer] = shape[inner] + (choice.heads() ? choice.between(0, 9) : 0);
  layout.stride[0] = layout.stride[outer] * shape[outer] + (choice.heads() ? choice.between(0, 9) : 0);
  return layout;
}

Index extent(Choice& choice) { return choice.of<Index>({1, 2, 3, 7, 16, 17, 31, 32, 33, 64, 65, 100, 127}); }

Bound sums(Index k) { return {.terms = 4 * (std::sqrt(static_cast<double>(k)) + 4), .absolute = 1e-30}; }

char const* const epilogues[] = {
    "acc",
    "alpha * acc + beta * c",
    "2.5 * acc - 0.5 * c",
    "acc + bias[n]",
    "relu(acc + bias[n])",
    "leaky_relu(acc * 0.5 + bias[m], 0.1)",
    "tanh(alpha * acc + bias[n]) * scale[m]",
    "acc * scale[n] + shift[n]",
    "let t = acc + bias[n]; store(pre, t); relu(t) + residual[m, n]",
    "max(acc, c) + whole[batch, m, n]",
    "gelu(acc)",
};

TEST(Gemm, F32OfAnyShapeLayoutAndEpilogue) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    Choice choice(seed);
    Index const batch = choice.of<Index>({1, 1, 1, 2, 5}), k = extent(choice);
    auto problem =
        make_problem(DataType::f32, DataType::f32, DataType::f32, batch, extent(choice), extent(choice), k);
    problem.a.layout = matrices(choice, problem.a.shape());
    problem.b.layout = matrices(choice, problem.b.shape());
    problem.d.layout = matrices(choice, problem.d.shape());
    if (choice.between(0, 4) == 0) problem.b.layout.stride[0] = 0;
    set_epilogue(problem, epilogues[seed % std::size(epilogues)], choice);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.epilogue.expression.text() + "; a " +
                 to_string(problem.a) + ", b " + to_string(problem.b) + ", d " + to_string(problem.d));
    Bound bound = sums(k);
    bound.absolute = 2e-6;  // for functions such as exp
    Trial(problem, seed).expect_fast_and_close(cpu(), bound);
  }
}

TEST(Gemm, EveryKernelThatAcceptsAProblemComputesIt) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    Choice choice(seed);
    auto problem = make_problem(DataType::f32, DataType::f32, DataType::f32, 2, 17, 33, 40);
    set_epilogue(problem, epilogues[seed % std::size(epilogues)], choice);
    auto const plan = make_plan(problem, cpu());
    for (auto const& considered : plan.considered)
      if (considered.refusal.empty())
        Trial(problem, seed).expect_close(cpu(), {.terms = 40, .absolute = 2e-6}, considered.kernel);
  }
}

TEST(Gemm, SmallIntegersAreExactInEveryType) {
  using enum DataType;
  struct Types {
    DataType a, b, d;
  };
  for (Types types : {Types{f64, f64, f64},
                      {f32, f32, f32},
                      {bf16, bf16, f32},
                      {bf16, bf16, bf16},
                      {f16, f16, f16},
                      {s8, s8, s32},
                      {u8, s8, s32},
                      {s8, u8, s32},
                      {u8, u8, s32},
                      {s8, s8, f32},
                      {s8, s8, s8},
                      {e4m3, e4m3, f32},
                      {e5m2, e4m3, bf16},
                      {tf32, tf32, f32},
                      {f32, f64, f64},
                      {f16, f32, s8}}) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      Choice choice(seed);
      auto problem = make_problem(types.a, types.b, types.d, choice.of<Index>({1, 3}), extent(choice),
                                  extent(choice), extent(choice));
      problem.a.layout =
          seed % 3 == 0 ? choice.layout(problem.a.shape()) : matrices(choice, problem.a.shape());
      problem.b.layout =
          seed % 3 == 0 ? choice.layout(problem.b.shape()) : matrices(choice, problem.b.shape());
      problem.d.layout =
          seed % 3 == 0 ? choice.layout(problem.d.shape()) : matrices(choice, problem.d.shape());
      if (choice.heads()) set_epilogue(problem, "2 * acc + c", choice);
      SCOPED_TRACE(std::string("seed ") + std::to_string(seed) + " " + name_of(types.a) + " " +
                   name_of(types.b));
      Trial(problem, seed, Values::small_integers).expect_fast_and_close(cpu(), {.exact = true});
    }
  }
}

TEST(Gemm, F64MeetsItsBound) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Choice choice(seed);
    Index const k = extent(choice);
    auto problem = make_problem(DataType::f64, DataType::f64, DataType::f64, choice.of<Index>({1, 2, 7}),
                                extent(choice), extent(choice), k);
    problem.a.layout = choice.layout(problem.a.shape());
    problem.d.layout = matrices(choice, problem.d.shape());
    set_epilogue(problem, epilogues[seed % 9], choice);
    Bound bound = sums(k);
    bound.absolute = 1e-14;
    Trial(problem, seed).expect_fast_and_close(cpu(), bound);
  }
}

TEST(Gemm, ExtremeShapes) {
  for (auto [m, n, k] :
       {std::array<Index, 3>{1, 1, 4096}, {1, 1000, 257}, {1000, 1, 257}, {2, 3, 1}, {300, 300, 5}}) {
    auto problem = make_problem(DataType::f32, DataType::f32, DataType::f32, 1, m, n, k);
    Trial(problem, 7).expect_fast_and_close(cpu(), sums(k));
  }
  Trial(make_problem(DataType::f32, DataType::f32, DataType::f32, 1, 3, 4, 0), 7)
      .expect_close(cpu(), {.exact = true});
}

TEST(Gemm, ProductsThatPackAnOperandAgreeWithThoseThatDoNot) {
  auto const problem = make_problem(DataType::f32, DataType::f32, DataType::f32, 1, 1030, 1500, 1450);
  Trial trial(problem, 9);
  auto const packed = trial.run(prepare(make_plan(problem, cpu(), {.kernel = "onednn_matmul"}))).at("d");
  auto const plain = trial.run(prepare(make_plan(problem, cpu(), {.kernel = "onednn_sgemm"}))).at("d");
  for (Index i = 0; i < packed->size(); ++i) ASSERT_NEAR(packed->get(i), plain->get(i), 1e-3) << i;
}

// Tiles of f32: 256 by 1024 and smaller; of f64: 512 by 2048. The last rows and columns form partial tiles.
TEST(Gemm, TilesOfAnyLayoutAndEpilogue) {
  for (unsigned seed = 0; seed < 22; ++seed) {
    Choice choice(seed);
    bool const wide = seed % 4 == 3;
    DataType const type = wide ? DataType::f64 : DataType::f32;
    Index const m = choice.of<Index>({1, 64, 65, 300, 515, 1030}),
                n = choice.of<Index>({1, 63, 512, 700, 1600}), k = choice.of<Index>({1, 5, 16, 19});
    auto problem = make_problem(type, type, choice.heads() ? type : DataType::bf16, 1, m, n, k);
    if (wide) problem.d.type = type;
    problem.a.layout = matrices(choice, problem.a.shape());
    problem.b.layout = matrices(choice, problem.b.shape());
    problem.d.layout = wide ? matrices(choice, problem.d.shape()) : choice.layout(problem.d.shape());
    set_epilogue(problem, epilogues[seed % std::size(epilogues)], choice);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.epilogue.expression.text() + "; a " +
                 to_string(problem.a) + ", b " + to_string(problem.b) + ", d " + to_string(problem.d));
    Bound bound = sums(k);
    bound.absolute = wide ? 1e-14 : 2e-6;
    std::vector<int> const counts = seed % 3 == 0 ? std::vector{1, 2, 5} : std::vector{seed % 3 == 1 ? 2 : 5};
    for (int threads : counts)
      Trial(problem, seed).expect_close(cpu(threads), bound, wide ? "openblas" : "onednn_tiled");
  }
}

TEST(Gemm, TilesOfOpenblasInABatch) {
  for (char const* text :
       {"tanh(acc + bias[n]) * scale[batch, m]", "store(pre, acc); relu(acc) + whole[batch, m, n]"})
    for (DataType const type : {DataType::f64, DataType::f32}) {
      bool const wide = type == DataType::f64;
      Choice choice(5);
      auto problem = make_problem(type, type, type, 3, 600, 70, 9);
      problem.d.layout = matrices(choice, problem.d.shape());
      set_epilogue(problem, text, choice);
      Bound bound = sums(9);
      bound.absolute = wide ? 1e-14 : 2e-6;
      for (int threads : {1, 2, 7})
        Trial(problem, 5).expect_close(cpu(threads), bound, wide ? "openblas" : "openblas_f32");
    }
}

// The rows of b are a multiple of a page apart, or its columns are contiguous, so it is packed.
TEST(Gemm, TilesOfAPackedOperandAgreeWithWholeProducts) {
  for (bool transposed : {false, true}) {
    Choice choice(2);
    auto problem = make_problem(DataType::f32, DataType::f32, DataType::f32, 1, 530, 2048, 1030);
    if (transposed) problem.b.layout = row_major({1, 2048, 1030}).permuted(0, 2, 1);
    set_epilogue(problem, "relu(acc + bias[n]) + residual[m, n]", choice);
    Trial trial(problem, 9);
    auto const tiled = trial.run(prepare(make_plan(problem, cpu(), {.kernel = "onednn_tiled"}))).at("d");
    auto const whole = trial.run(prepare(make_plan(problem, cpu(), {.kernel = "onednn_matmul"}))).at("d");
    for (Index i = 0; i < tiled->size(); ++i) ASSERT_NEAR(tiled->get(i), whole->get(i), 1e-3) << i;
  }
}

TEST(Gemm, TilesAreForLargeProductsWithAnEpilogueOfOurOwn) {
  auto const chosen = [](char const* text, Index size, int threads, char const* processor = "avx512-server") {
    Choice choice(3);
    auto problem = make_problem(DataType::f32, DataType::f32, DataType::f32, 1, size, size, size);
    set_epilogue(problem, text, choice);
    for (TensorDescription& operand : problem.epilogue.operands)
      operand = describe(DataType::f32, operand.shape());
    return make_plan(problem, describe_processor(processor, threads)).kernel;
  };
  EXPECT_EQ(chosen("gelu(acc + bias[n]) + residual[m, n]", 1024, 2), "onednn_tiled");
  EXPECT_EQ(chosen("relu(alpha*acc + beta*c + bias[n])", 1024, 8), "onednn_tiled");
  EXPECT_EQ(chosen("gelu(acc + bias[n])", 1024, 2), "onednn_matmul");
  EXPECT_EQ(chosen("alpha*acc + beta*c", 1024, 2), "onednn_sgemm");
  EXPECT_EQ(chosen("acc", 1024, 2), "onednn_sgemm");
  EXPECT_EQ(chosen("acc", 256, 2), "onednn_sgemm");
  EXPECT_EQ(chosen("acc", 255, 2), "onednn_matmul");
  EXPECT_EQ(chosen("relu(acc)", 256, 2), "onednn_matmul");
  EXPECT_EQ(chosen("relu(acc)", 1024, 200), "onednn_matmul");
  for (char const* processor : {"avx2-laptop", "sse2-only"})
    EXPECT_EQ(chosen("gelu(acc + bias[n]) + residual[m, n]", 1024, 2, processor), "onednn_matmul");
  auto transposed = make_problem(DataType::f32, DataType::f32, DataType::f32, 1, 1024, 1024, 1024);
  transposed.epilogue.expression = epilogue::parse("relu(acc)");
  transposed.a.layout = transposed.a.layout.permuted(0, 2, 1);
  EXPECT_EQ(make_plan(transposed, describe_processor("avx512-server", 2)).kernel, "onednn_matmul");
}

TEST(Gemm, NotANumberStaysWhatItIsInTiles) {
  for (DataType type : {DataType::f32, DataType::f64})
    for (char const* text :
         {"relu(acc + bias[n])", "gelu(acc) + residual[m, n]", "max(acc, c)", "silu(acc) * s"}) {
      Choice choice(1);
      auto problem = make_problem(type, type, type, 1, 140, 150, 16);
      set_epilogue(problem, text, choice);
      Trial trial(problem, 3);
      trial.input("a").set(1000, std::nan(""));
      trial.input("b").set(77, std::numeric_limits<double>::infinity());
      SCOPED_TRACE(text);
      trial.expect_close(cpu(), {.terms = 40, .absolute = 2e-6},
                         type == DataType::f64 ? "openblas" : "onednn_tiled");
    }
}

TEST(Gemm, NotANumberStaysWhatItIs) {
  for (char const* text : {"acc", "relu(acc)", "leaky_relu(acc, 0.1)", "max(acc, 0)", "alpha*acc + beta*c"}) {
    Choice choice(1);
    auto problem = make_problem(DataType::f32, DataType::f32, DataType::f32, 1, 20, 20, 20);
    set_epilogue(problem, text, choice);
    Trial trial(problem, 3);
    trial.input("a").set(45, std::nan(""));
    SCOPED_TRACE(text);
    trial.expect_close(cpu(), {.terms = 40});
  }
}

}  // namespace
}  // namespace cosmati
