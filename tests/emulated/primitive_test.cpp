// The primitives' kernels in the emulator against the reference: every type, any strides, gaps and promised
// alignment, extents of 0, results in place of operands. `cosmati verify` runs larger sweeps.
#include <cstring>
#include <limits>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/activation.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/elementwise_expression.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/optimizer_group.h"
#include "cosmati/ops/softmax.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using enum DataType;
using test::Choice;
using test::Trial;
using test::Values;

Device emulator() { return this_device(Backend::emulator, 1); }

constexpr DataType every_type[] = {f64, f32, tf32, f16, bf16, e4m3, e5m2, s8, u8, s32};

TEST(EmulatedPrimitive, TransformsEveryTypeToEveryTypeInAnyLayout) {
  for (DataType from : every_type)
    for (DataType to : every_type) {
      Choice choice(static_cast<unsigned>(from) * 16 + static_cast<unsigned>(to));
      Shape const shape(choice.between(1, 9), choice.between(1, 20), choice.between(1, 40));
      TransformProblem const problem{describe(from, choice.layout(shape)),
                                     describe(to, choice.layout(shape))};
      SCOPED_TRACE(to_string(problem.x) + " -> " + to_string(problem.y));
      Trial(problem, 7).expect_fast_and_close(emulator(), {.exact = true});
    }
}

TEST(EmulatedPrimitive, TransposesThroughTiles) {
  auto const nhwc = describe(f32, image_layout(TensorFormat::nhwc, 2, 35, 5, 7));
  TransformProblem const problem{describe(f32, Shape(2, 35, 5, 7)), nhwc};
  auto const plan = make_plan(problem, emulator());
  EXPECT_TRUE(plan.considered[0].recipe.starts_with("transpose 2 x 35 x 35")) << plan.considered[0].recipe;
  Trial(problem, 3).expect_fast_and_close(emulator(), {.exact = true});
}

TEST(EmulatedPrimitive, AxesThatLieAlikeAreOne) {
  AddProblem problem{describe(f32, Shape(4, 6, 10)), describe(f32, Shape(4, 6, 10)),
                     describe(f32, Shape(4, 6, 10))};
  EXPECT_TRUE(make_plan(problem, emulator()).considered[0].recipe.starts_with("map 240, runs of 4"));
  problem.b.alignment = 4;  // the smallest promised alignment decides
  EXPECT_TRUE(make_plan(problem, emulator()).considered[0].recipe.starts_with("map 240, runs of 1"));
  problem.b = describe(f32, Layout{{4, 6, 10}, {72, 12, 1}});  // rows of 10 with gaps of 2
  EXPECT_TRUE(make_plan(problem, emulator()).considered[0].recipe.starts_with("map 24 x 10, runs of 1"));
}

TEST(EmulatedPrimitive, ExtentsOfNothing) {
  TensorDescription const none = describe(f32, Shape(3, 0));
  ActivationProblem activation;
  activation.x = activation.y = none;
  Trial(activation, 1).expect_fast_and_close(emulator(), {});
  Trial(ReduceProblem{ReduceOperation::sum, none, describe(f32, Shape(3, 1))}, 1)
      .expect_fast_and_close(emulator(), {.exact = true});
  SoftmaxProblem softmax;
  softmax.axis = 0;
  softmax.x = softmax.y = none;
  Trial(softmax, 1).expect_fast_and_close(emulator(), {});
}

TEST(EmulatedPrimitive, DropoutKeepsTheSameElementsInEveryLayout) {
  DropoutProblem problem{describe(f16, Shape(4, 12, 8)),
                         describe(f16, image_layout(TensorFormat::nchw, 4, 12, 8, 1)), 0.3, 42};
  problem.y = problem.x;
  DropoutProblem other = problem;
  other.x.layout = other.y.layout = Layout{{4, 12, 8}, {1, 4, 48}};
  for (DropoutProblem const& one : {problem, other}) {
    Trial<DropoutProblem> trial(one, 5);
    trial.settings().step = 9;
    trial.expect_fast_and_close(emulator(), {.terms = 4});
  }
}

TEST(EmulatedPrimitive, AFewElementsOfManyTermsAreSplitOverBlocks) {
  ReduceProblem problem{ReduceOperation::sum, describe(f32, Shape(3, 5, 40000)),
                        describe(f32, Shape(1, 5, 1))};
  auto const plan = make_plan(problem, emulator());
  EXPECT_NE(plan.considered[0].recipe.find(" parts; then reduce"), std::string::npos)
      << plan.considered[0].recipe;
  EXPECT_GT(plan.workspace_bytes, 0u);
  Trial(problem, 3, Values::small_integers).expect_fast_and_close(emulator(), {.exact = true});
  for (ReduceOperation operation :
       {ReduceOperation::mean, ReduceOperation::max, ReduceOperation::sum_of_squares}) {
    problem.operation = operation;
    Trial(problem, 4).expect_fast_and_close(emulator(), {.terms = 300});
  }
}

TEST(EmulatedPrimitive, MomentsOfPartsAreThoseOfTheWhole) {
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::nhwc}) {
    BatchNormProblem problem;
    problem.mode = BatchNormMode::training;
    problem.x = problem.y = describe(f32, image_layout(format, 16, 8, 60, 60));
    problem.statistics = describe(f32, Shape(8));
    EXPECT_NE(make_plan(problem, emulator()).considered[0].recipe.find("parts"), std::string::npos);
    Trial(problem, 3).expect_fast_and_close(emulator(), {.terms = 60, .absolute = 1e-4});
  }
}

TEST(EmulatedPrimitive, BatchNormWithActivation) {
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (DataType const type : {f32, f16})
      for (double const slope : {0.0, 0.2})
        for (BatchNormMode const mode :
             {BatchNormMode::inference, BatchNormMode::training, BatchNormMode::backward}) {
          BatchNormProblem problem;
          problem.mode = mode;
          problem.x = problem.y = describe(type, image_layout(format, 4, 6, 7, 8));
          if (mode == BatchNormMode::backward) problem.dx = problem.x;
          problem.statistics = describe(f32, Shape(6));
          problem.slope = slope;
          SCOPED_TRACE(to_string(problem.x) + " slope " + std::to_string(slope) + " mode " +
                       std::to_string(static_cast<int>(mode)));
          Trial trial(problem, 5);
          if (mode != BatchNormMode::training)
            for (Index c = 0; c < 6; ++c)
              trial.input("variance").set(c, 0.5 + std::abs(trial.input("variance").get(c)));
          trial.expect_fast_and_close(emulator(),
                                      {.relative = 1e-5, .absolute = 1e-4, .uses_magnitude = false});
        }
}

TEST(EmulatedPrimitive, AnExpressionWithOperandsAndStores) {
  Shape const shape(2, 6, 5, 8);
  auto const letters = elementwise_indices(4);
  ElementwiseProblem problem;
  problem.x = describe(f32, image_layout(TensorFormat::nhwc, 2, 6, 5, 8));
  problem.y = describe(bf16, shape);
  problem.epilogue = {
      epilogue::parse("let t = acc * scale[c] + bias[n, c]; store(pre, t); relu(t) + shift", letters),
      {describe(f32, Shape(6)), describe(f16, Shape(2, 6))},
      {describe(f32, shape)}};
  Trial(problem, 8).expect_fast_and_close(emulator(), {.terms = 8});
}

TEST(EmulatedPrimitive, AnExpressionNamesNoMoreThanAKernelTakes) {
  ElementwiseProblem problem{describe(f32, Shape(3)), describe(f32, Shape(3)), {}};
  std::string text = "acc";
  for (char const* name : {"a", "b", "d", "f", "g", "h", "k", "l"}) {
    text += std::string(" + ") + name + "[i]";
    problem.epilogue.operands.push_back(describe(f32, Shape(3)));
  }
  problem.epilogue.expression = epilogue::parse(text, elementwise_indices(1));
  EXPECT_THROW(validate(problem), Error);
}

TEST(EmulatedPrimitive, ResultsTakeThePlaceOfOperands) {
  std::vector<float> x(1000), expected;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) - 8;
  for (float const value : x) expected.push_back(value < 0 ? 0 : value);
  auto tensor = describe(f32, Shape(1000));
  tensor.alignment = 4;
  ActivationProblem relu;
  relu.x = relu.y = tensor;
  prepare(make_plan(relu, emulator())).run({.x = x.data(), .y = x.data()});
  EXPECT_EQ(x, expected);
}

// One step for tensors that share launches, and for one with gaps.
TEST(EmulatedPrimitive, ManyTensorsStepInFewLaunches) {
  OptimizerGroupProblem group;
  std::vector<std::vector<float>> memory;
  std::vector<OptimizerGroupProblem::Pointers> pointers, alone;
  auto const array = [&](Index size, float scale) {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * static_cast<float>(i % 13);
    memory.push_back(std::move(values));
  };
  for (Index i = 0; i < 40; ++i) {
    OptimizerProblem one;
    one.kind = OptimizerKind::adam;
    one.parameter = describe(f32, i == 7 ? Layout{{3, 5}, {9, 1}} : row_major({3, 7 * i + 4}));
    one.parameter.alignment = 4;
    one.gradient = one.state = one.parameter;
    group.tensors.push_back(one);
    for (float const scale : {1.0f, 0.5f, 0.0f, 0.0f, 1.0f, 0.0f, 0.0f})
      array(one.parameter.layout.span(), scale);
  }
  for (std::size_t i = 0; i < memory.size(); i += 7) {
    pointers.push_back({memory[i].data(), memory[i + 1].data(), memory[i + 2].data(), memory[i + 3].data()});
    alone.push_back({memory[i + 4].data(), memory[i + 1].data(), memory[i + 5].data(), memory[i + 6].data()});
  }
  auto const plan = make_plan(group, emulator());
  EXPECT_TRUE(plan.considered[0].recipe.find("32 tensors") != std::string::npos) << plan.considered[0].recipe;
  prepare(plan).run({pointers, 0.1, 3});
  prepare(make_plan(group, this_device(Backend::reference))).run({alone, 0.1, 3});
  for (std::size_t i = 0; i < memory.size(); i += 7)
    for (std::size_t j = 0; j < memory[i].size(); ++j) {
      ASSERT_NEAR(memory[i][j], memory[i + 4][j], 1e-6) << "tensor " << i / 7;
      ASSERT_NEAR(memory[i + 3][j], memory[i + 6][j], 1e-6) << "tensor " << i / 7;
    }
  EXPECT_NE(memory[5 * 7][1], 1.0f);
  pointers.pop_back();
  EXPECT_THROW(prepare(plan).run({pointers, 0.1, 3}), Error);
}

TEST(EmulatedPrimitive, LabelsThatTheHostCanReadAreChecked) {
  CrossEntropyProblem problem{
      Direction::forward, describe(f32, Shape(2, 3)), describe(s32, Shape(2)), describe(f32, Shape(1)), {}};
  float const x[6] = {};
  int const labels[2] = {0, 3};
  float loss = 0;
  auto const prepared = prepare(make_plan(problem, emulator()));
  std::vector<std::byte> workspace(prepared.workspace_bytes() + 64);
  void* at = workspace.data();
  std::size_t space = workspace.size();
  std::align(64, prepared.workspace_bytes(), at, space);
  EXPECT_THROW(prepared.run({.x = x, .labels = labels, .loss = &loss}, at), Error);
}

}  // namespace
}  // namespace cosmati
