// The source text of primitives: its content, and that the run-time compiler turns it into machine code
// without spills. Skipped without NVRTC.
#include <gtest/gtest.h>

#include <tuple>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cuda/executor.h"
#include "src/jit/nvrtc.h"
#include "src/plan/primitive/kernel.h"
#include "src/plan/primitive/lower.h"

namespace cosmati {
namespace {

using enum DataType;

plan::PrimitiveTarget h200() { return {describe_gpu("h200"), false}; }

template <class Problem>
void expect_machine_code(Problem const& problem, std::size_t passes) {
  validate(problem);
  plan::PrimitiveProgram const program = plan::lower(problem, h200());
  SCOPED_TRACE(plan::to_string(program));
  EXPECT_EQ(program.passes.size(), passes);
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  for (plan::PrimitivePass const& pass : program.passes) {
    jit::Cubin const cubin = jit::compile(cuda::kernel_source(plan::kernel_of(pass), h200().gpu));
    EXPECT_EQ(cubin.local_bytes, 0);
    EXPECT_LE(cubin.registers, 128);
    EXPECT_EQ(cubin.compiler_warnings, "");
  }
}

TEST(PrimitiveSource, NamesTypesRunsAndTheFunction) {
  ActivationProblem relu;
  relu.x = describe(f16, Shape(64, 64));
  relu.y = describe(f32, Shape(64, 64));
  plan::PrimitiveProgram const program = plan::lower(relu, h200());
  ASSERT_EQ(program.passes.size(), 1u);
  std::string const text = cuda::kernel_source(plan::kernel_of(program.passes[0]), h200().gpu).text;
  for (char const* part : {".width = 8", "Elements<f16, false>", "Elements<f32, false>",
                           "< Real(0) ? Real(0)", "using Real = f32"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(PrimitiveSource, Steps) {
  OptimizerGroupProblem group;
  for (Index const size : {1000, 30, 77}) {
    OptimizerProblem adam;
    adam.kind = OptimizerKind::adam;
    adam.parameter = adam.gradient = adam.state = describe(f32, Shape(size));
    group.tensors.push_back(adam);
  }
  expect_machine_code(group, 1);
}

TEST(PrimitiveSource, GathersAndStepsWithNumbersInMemory) {
  GatherProblem gather;
  gather.x = describe(u8, Shape(60000, 784));
  gather.order = describe(s32, Shape(64));
  gather.y = describe(f32, Shape(64, 784));
  expect_machine_code(gather, 1);
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    OptimizerProblem step;
    step.kind = kind;
    step.parameter = step.gradient = step.state = describe(f32, Shape(61712));
    step.momentum = 0.9;
    step.numbers = describe(f32, Shape(3));
    expect_machine_code(step, 1);
    step.scaling = describe(f32, Shape(2));
    expect_machine_code(step, 1);
  }
}

// One factor for all elements: an operand with a single element.
TEST(PrimitiveSource, ScalesByANumberInMemory) {
  TensorDescription one = describe(f32, Shape(64));
  one.layout.stride[0] = 0;
  one.alignment = 4;
  ElementwiseProblem problem;
  problem.x = describe(f32, Shape(64, 10));
  problem.y = describe(f16, Shape(64, 10));
  problem.epilogue = {epilogue::parse("acc * scale[m]", elementwise_indices(2)), {one}, {}};
  expect_machine_code(problem, 1);
}

TEST(PrimitiveSource, MasksAndTransposes) {
  expect_machine_code(DropoutProblem{describe(f16, Shape(64, 64)), describe(f16, Shape(64, 64)), 0.5, 1}, 1);
  expect_machine_code(TransformProblem{describe(bf16, Shape(2, 64, 8, 8)),
                                       describe(f16, image_layout(TensorFormat::nhwc, 2, 64, 8, 8))},
                      1);
}

TEST(PrimitiveSource, RowNormsKeepTheirRows) {
  for (auto const mode : {RowNormMode::layer, RowNormMode::rms})
    for (Index const length : {24, 1024, 4096, 40000}) {
      RowNormProblem norm;
      norm.mode = mode;
      norm.x = norm.y = norm.dx = describe(f16, Shape(4096, length));
      norm.weight = describe(f16, Shape(length));
      norm.statistics = describe(f32, Shape(4096, 1));
      expect_machine_code(norm, 1);
      bool const kept = length <= 4096;
      EXPECT_EQ(plan::lower(norm, h200()).passes[0].parameters.policy.cached > 0, kept) << length;
      norm.direction = Direction::backward;
      expect_machine_code(norm, 1);
      EXPECT_EQ(plan::lower(norm, h200()).passes[0].parameters.policy.cached > 0, kept) << length;
      norm.dweight = norm.weight;
      if (norm.centered()) norm.dbias = norm.weight;
      // One pass computes dx and the blocks' sums of weight and bias, and the last one combines these.
      bool const in_one_pass = length == 1024 || length == 4096;
      EXPECT_EQ(plan::lower(norm, h200()).passes.back().family,
                in_one_pass ? plan::PrimitiveFamily::reduce : plan::PrimitiveFamily::rows)
          << length;
    }
}

TEST(PrimitiveSource, BatchNormInTwoTypesAndThreePasses) {
  BatchNormProblem norm;
  norm.mode = BatchNormMode::training;
  norm.x = norm.y = describe(f16, image_layout(TensorFormat::nhwc, 32, 64, 56, 56));
  norm.statistics = describe(f32, Shape(64));
  expect_machine_code(norm, 3);
}

// An activation does not increase the number of passes.
TEST(PrimitiveSource, BatchNormWithActivation) {
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (DataType const type : {f32, bf16})
      for (BatchNormMode const mode :
           {BatchNormMode::inference, BatchNormMode::training, BatchNormMode::backward}) {
        BatchNormProblem norm;
        norm.mode = mode;
        norm.x = norm.y = describe(type, image_layout(format, 256, 64, 32, 32));
        if (mode == BatchNormMode::backward) norm.dx = norm.x;
        norm.statistics = describe(f32, Shape(64));
        std::size_t const passes = plan::lower(norm, h200()).passes.size();
        for (double const slope : {0.0, 0.2}) {
          norm.slope = slope;
          expect_machine_code(norm, passes);
        }
      }
}

TEST(PrimitiveSource, LossesOfRows) {
  CrossEntropyProblem loss{Direction::forward, describe(bf16, Shape(512, 1000)), describe(s32, Shape(512)),
                           describe(f32, Shape(1)), describe(bf16, Shape(512, 1000))};
  expect_machine_code(loss, 2);
}

// Rows and channels that need clusters have an alternative on devices without them.
TEST(PrimitiveSource, RowsAndChannelsOfClusters) {
  SoftmaxProblem softmax;
  softmax.x = softmax.y = describe(f32, Shape(1024, 131072));
  BatchNormProblem norm;
  norm.mode = BatchNormMode::training;
  norm.x = norm.y = describe(f32, Shape(64, 256, 56, 56));
  norm.statistics = describe(f32, Shape(256));
  expect_machine_code(softmax, 1);
  expect_machine_code(norm, 1);
  plan::PrimitiveTarget const a100{describe_gpu("a100"), false};
  for (auto const& program : {plan::lower(softmax, a100), plan::lower(norm, a100)}) {
    EXPECT_EQ(plan::to_string(program).find("cluster"), std::string::npos);
    if (!jit::nvrtc_available()) continue;
    for (plan::PrimitivePass const& pass : program.passes)
      EXPECT_GT(jit::compile(cuda::kernel_source(plan::kernel_of(pass), a100.gpu)).registers, 0);
  }
}

TEST(PrimitiveSource, WholeWindowsAndChannelsOfAThread) {
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (DataType type : {f32, f16}) {
      PoolingProblem pool;
      pool.x = describe(type, image_layout(format, 2, 64, 56, 56));
      pool.y = describe(type, image_layout(format, 2, 64, 28, 28));
      expect_machine_code(pool, 1);
      pool.direction = Direction::backward;
      expect_machine_code(pool, 1);
    }
  LrnProblem lrn;
  lrn.x = lrn.y = describe(f32, Shape(2, 64, 27, 27));
  expect_machine_code(lrn, 1);
  lrn.direction = Direction::backward;
  lrn.dx = lrn.x;
  expect_machine_code(lrn, 1);
}

TEST(PrimitiveSource, PlanesInSharedMemory) {
  for (DataType type : {f32, f16, bf16})
    for (auto const& [size, rows, columns] : {std::tuple{1, 27, 27},
                                              {2, 27, 27},
                                              {5, 27, 27},
                                              {9, 27, 27},
                                              {9, 17, 17},
                                              {5, 25, 37},
                                              {5, 13, 13}}) {
      LrnProblem lrn;
      lrn.x = lrn.y = describe(type, Shape(64, 96, rows, columns));
      lrn.size = size;
      ASSERT_EQ(cuda::kernel_source(plan::kernel_of(plan::lower(lrn, h200()).passes.at(0)), h200().gpu)
                    .text.find("primitive/lrn.h"),
                std::string::npos);
      expect_machine_code(lrn, 1);
    }
}

// Two adjacent windows with stride 3 cover six columns, four cover twelve: no vector loads.
TEST(PrimitiveSource, WindowsWithStridesThatAreNoPowerOfTwo) {
  for (DataType type : {e4m3, f16, bf16, f32})
    for (PoolingMode mode : {PoolingMode::max, PoolingMode::average, PoolingMode::average_with_padding}) {
      Index const windows = size_of(type) == 1 ? 4 : 2;
      PoolingProblem pool;
      pool.mode = mode;
      pool.x = describe(type, Shape(1, 64, 10, 3 * windows - 2));
      pool.y = describe(type, Shape(1, 64, 3, windows));
      pool.window[0] = 2, pool.window[1] = 1;
      pool.stride[0] = pool.stride[1] = 3;
      expect_machine_code(pool, 1);
    }
}

TEST(PrimitiveSource, Windows) {
  PoolingProblem pool;
  pool.direction = Direction::backward;
  pool.x = describe(f64, image_layout(TensorFormat::nhwc, 2, 16, 8, 8));
  pool.y = describe(f64, image_layout(TensorFormat::nhwc, 2, 16, 4, 4));
  expect_machine_code(pool, 1);
}

}  // namespace
}  // namespace cosmati
