// Element-wise expressions on the cpu backend, which never fall back to the reference, whatever is broadcast.
#include "cosmati/ops/elementwise_expression.h"

#include "cosmati/epilogue/parse.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using enum DataType;
using test::Choice;
using test::Trial;
using test::Values;

Device cpu(int threads) { return this_device(Backend::cpu, threads); }

// Up to seven operands, each broadcast along a random choice of the indices; sometimes one with a single
// element, sometimes a store and a scalar.
ElementwiseProblem random_problem(Choice& choice, std::vector<DataType> const& types) {
  auto const type = [&] {
    return types[static_cast<std::size_t>(choice.between(0, static_cast<Index>(types.size()) - 1))];
  };
  Shape shape;
  shape.rank = static_cast<int>(choice.between(1, 5));
  for (int d = 0; d < shape.rank; ++d)
    shape[d] = choice.of<Index>({1, 2, 3, 5, 7, 16, shape.rank < 3 ? 700 : 33});
  auto const letters = elementwise_indices(shape.rank);
  ElementwiseProblem problem;
  problem.x = describe(type(), choice.layout(shape));
  problem.y = describe(type(), choice.layout(shape));
  std::string text = choice.heads() ? "gain * acc" : "acc";
  Index const operands = choice.between(0, max_elementwise_operands);
  std::vector<TensorDescription> described;
  for (Index i = 0; i < operands; ++i) {
    Shape own;
    std::string indices;
    for (int d = 0; d < shape.rank; ++d)
      if (choice.heads()) {
        indices += (indices.empty() ? "" : ", ") + std::string(letters[static_cast<std::size_t>(d)]);
        own.extent[own.rank++] = shape[d];
      }
    if (own.rank == 0) continue;  // an operand has at least one index
    text += (choice.heads() ? " + o" : " - o") + std::to_string(i) + "[" + indices + "]";
    described.push_back(describe(type(), choice.layout(own)));
  }
  bool const stored = choice.heads();
  problem.epilogue.expression =
      epilogue::parse(stored ? "let t = " + text + "; store(pre, t); relu(t)" : text, letters);
  problem.epilogue.operands = described;
  if (stored) problem.epilogue.stores.push_back(describe(type(), choice.layout(shape)));
  return problem;
}

void expect_right(std::vector<DataType> const& types, Values values, test::Bound const& bound) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    Choice choice(seed);
    auto const problem = random_problem(choice, types);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.epilogue.expression.text() + " of " +
                 to_string(problem.x));
    Trial(problem, seed, values).expect_fast_and_close(cpu(seed % 2 == 0 ? 1 : 3), bound);
  }
}

TEST(ElementwiseExpression, F32OfAnyShapeLayoutAndBroadcast) {
  expect_right({f32}, Values::normal, {.terms = 20, .absolute = 4e-6});
}

TEST(ElementwiseExpression, SmallIntegersAreExactInEveryMixOfTypes) {
  expect_right({f64, f32, tf32, f16, bf16, s8, s32}, Values::small_integers, {.exact = true});
}

TEST(ElementwiseExpression, FunctionsOfLargeArrays) {
  for (char const* text :
       {"gelu(acc) * scale[c] + other[n, c, h, w]", "select(acc > scale[c], tanh(acc), mask[h, w] * acc)",
        "exp(min(acc, 2)) / (1 + abs(other[n, c, h, w]))", "pow(abs(acc) + 1, 0.5) + row[w] * column[h]"}) {
    ElementwiseProblem problem;
    Shape const shape{3, 5, 33, 41};
    problem.x = problem.y = describe(f32, shape);
    auto const letters = elementwise_indices(4);
    problem.epilogue.expression = epilogue::parse(text, letters);
    for (auto const& operand : problem.epilogue.expression.operands()) {
      Shape own;
      for (auto const& letter : operand.indices)
        own.extent[own.rank++] =
            shape[static_cast<int>(std::find(letters.begin(), letters.end(), letter) - letters.begin())];
      problem.epilogue.operands.push_back(describe(f32, own));
    }
    SCOPED_TRACE(text);
    for (int threads : {1, 3})
      Trial(problem, 4).expect_fast_and_close(cpu(threads), {.terms = 40, .absolute = 4e-6});
  }
}

}  // namespace
}  // namespace cosmati
