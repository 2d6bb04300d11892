// Programs of primitives, without a GPU: axes, runs, tensors with too many elements for one launch.
#include <gtest/gtest.h>

#include "src/plan/primitive/lower.h"

namespace cosmati::plan {
namespace {

using enum DataType;

PrimitiveTarget h200() { return {describe_gpu("h200"), false}; }

// The number of elements that the passes write, computed from the axes of their positions.
double written(PrimitiveProgram const& program) {
  double sum = 0;
  for (PrimitivePass const& pass : program.passes) {
    EXPECT_LE(pass.parameters.positions, 1u << 30);
    sum += static_cast<double>(pass.parameters.positions) * pass.parameters.policy.width;
  }
  return sum;
}

TEST(PrimitiveProgram, FastDivisionIsDivision) {
  for (unsigned divisor : {1u, 2u, 3u, 7u, 10u, 641u, 65535u, 65536u, 1000003u, 0x40000000u, 0x7fffffffu}) {
    Divisor const by(divisor);
    for (unsigned n : {0u, 1u, divisor - 1, divisor, divisor + 1, 123456789u, 0x7ffffffeu, 0x7fffffffu})
      EXPECT_EQ(by.quotient(n & 0x7fffffffu), (n & 0x7fffffffu) / divisor) << n << " / " << divisor;
  }
}

TEST(PrimitiveProgram, TensorsPastWhatALaunchCountsAreSeveral) {
  ActivationProblem relu;
  relu.x = relu.y = describe(f16, Shape(Index{1} << 33, 5));
  validate(relu);
  PrimitiveProgram const program = lower(relu, h200());
  EXPECT_EQ(written(program), 0x1p33 * 5);
  Index next = 0;
  for (PrimitivePass const& pass : program.passes) {
    EXPECT_EQ(pass.inputs[0].binding.first, next);
    EXPECT_EQ(next % 64, 0);
    next += pass.parameters.run_extent;
  }
  EXPECT_EQ(next, 5 * (Index{1} << 33));
}

TEST(PrimitiveProgram, RowsAndReductionsToo) {
  SoftmaxProblem softmax;
  softmax.x = softmax.y = describe(f16, Shape(Index{1} << 31, 16));
  EXPECT_EQ(lower(softmax, h200()).passes.size(), 2u);
  ReduceProblem rows{ReduceOperation::sum, softmax.x, describe(f16, Shape(Index{1} << 31, 1))};
  EXPECT_EQ(lower(rows, h200()).passes.size(), 2u);
  // One result of 2^35 terms: partial sums, which are then combined.
  ReduceProblem all{ReduceOperation::sum, softmax.x, describe(f32, Shape(1, 1))};
  PrimitiveProgram const program = lower(all, h200());
  ASSERT_GT(program.passes.size(), 16u);
  Index terms = 0;
  for (std::size_t i = 0; i + 1 < program.passes.size(); ++i) {
    EXPECT_EQ(program.passes[i].inputs[0].binding.first, terms);
    EXPECT_LE(program.passes[i].parameters.terms, 1u << 30);
    terms += program.passes[i].parameters.run_extent;
  }
  EXPECT_EQ(terms, Index{1} << 35);
}

// x and dy are read once, and the sums of the blocks are combined by a second launch.
TEST(PrimitiveProgram, GradientsOfRowNormsAreSummedInThePassOverTheRows) {
  auto const gradient_of = [](Shape const& shape) {
    RowNormProblem problem;
    problem.direction = Direction::backward;
    problem.axis = 1;
    problem.x = problem.y = problem.dx = describe(f16, shape);
    problem.weight = problem.dweight = problem.dbias = describe(f16, Shape(shape[1]));
    problem.statistics = describe(f32, Shape(shape[0], 1));
    validate(problem);
    return lower(problem, h200());
  };
  PrimitiveProgram const fused = gradient_of(Shape(65536, 1024));
  ASSERT_EQ(fused.passes.size(), 2u);
  EXPECT_EQ(fused.passes[0].outputs.size(), 3u);
  EXPECT_LE(fused.passes[0].bytes, 3.1 * 2 * 65536 * 1024);
  EXPECT_EQ(fused.passes[1].family, PrimitiveFamily::reduce);
  EXPECT_EQ(fused.passes[1].parameters.terms, fused.passes[0].blocks);
  // The sums of a longer row do not fit in registers, and with few rows they are not worthwhile.
  EXPECT_GT(gradient_of(Shape(65536, 16384)).passes.size(), 2u);
  EXPECT_EQ(gradient_of(Shape(16, 1024)).passes.back().outputs.size(), 1u);
}

// Each block writes the sum of the losses of its rows, and one launch adds these sums.
TEST(PrimitiveProgram, LossesOf16BitScoresKeepRowsPacked) {
  CrossEntropyProblem problem;
  problem.x = describe(f16, Shape(65536, 1000));
  problem.labels = describe(s32, Shape(65536));
  problem.loss = describe(f16, Shape(1));
  validate(problem);
  PrimitiveProgram const program = lower(problem, h200());
  ASSERT_EQ(program.passes.size(), 2u);
  EXPECT_TRUE(program.passes[0].parameters.policy.packed);
  EXPECT_EQ(program.passes[0].parameters.policy.along, 16);
  EXPECT_EQ(program.passes[1].parameters.run_extent, 65536 * 16 / 256);
  problem.x = describe(f16, Shape(65536, 1001));  // rows are not aligned
  PrimitiveProgram const unaligned = lower(problem, h200());
  EXPECT_FALSE(unaligned.passes[0].parameters.policy.packed);
  EXPECT_EQ(unaligned.passes[1].parameters.run_extent, 65536 * 32 / 256);
}

// Groups of 16 elements, with addresses that are constants of the kernel if x and y have the same strides.
TEST(PrimitiveProgram, ResponseNormalizationLoadsTheNextGroupOfChannels) {
  LrnProblem problem;
  problem.x = problem.y = describe(f16, Shape(64, 256, 27, 27));
  problem.y.alignment = 8;  // otherwise, blocks keep planes
  validate(problem);
  auto const policy = [&] { return lower(problem, h200()).passes.at(0).parameters.policy; };
  EXPECT_EQ(policy().unroll, 16);
  EXPECT_EQ(policy().groups, 2);
  EXPECT_EQ(policy().step, 27 * 27);
  problem.x = problem.y = describe(f16, Shape(64, 256, 28, 28));
  EXPECT_EQ(policy().width, 4);
  EXPECT_EQ(policy().unroll, 4);
  problem.y.layout.stride[1] = 28 * 30;
  EXPECT_EQ(policy().step, 0);
}

// At least three blocks per multiprocessor keep planes of an odd number of elements.
TEST(PrimitiveProgram, ResponseNormalizationKeepsPlanesInSharedMemory) {
  LrnProblem problem;
  auto const pass_of = [&](DataType type, Shape const& shape) {
    problem.x = problem.y = describe(type, shape);
    validate(problem);
    return lower(problem, h200()).passes.at(0);
  };
  PrimitivePass const small = pass_of(f16, Shape(64, 256, 27, 27));
  EXPECT_EQ(small.blocks, 64u * 256 / 8);
  EXPECT_EQ(small.shared_bytes, 17536);  // 12 channels, up to 32 bytes around them, and a barrier
  EXPECT_TRUE(small.parameters.policy.bulk);
  EXPECT_EQ(small.bytes, 64.0 * 256 * 729 * 4);
  EXPECT_EQ(small.parameters.policy.threads, 128);
  EXPECT_EQ(pass_of(f32, Shape(64, 256, 27, 27)).parameters.policy.threads, 128);
  EXPECT_EQ(pass_of(f16, Shape(64, 256, 55, 55)).parameters.policy.threads, 256);

  auto const keeps = [](PrimitivePass const& pass) { return pass.parameters.policy.window.rows > 0; };
  problem.size = 9;
  EXPECT_TRUE(keeps(pass_of(f32, Shape(64, 256, 27, 27))));
  problem.size = 10;
  EXPECT_FALSE(keeps(pass_of(f32, Shape(64, 256, 27, 27))));
  problem.size = 5;
  EXPECT_FALSE(keeps(pass_of(f64, Shape(64, 256, 27, 27))));
  EXPECT_FALSE(keeps(pass_of(f16, Shape(64, 256, 7, 7))));
  EXPECT_FALSE(keeps(pass_of(f16, Shape(64, 256, 28, 28))));
  EXPECT_FALSE(keeps(pass_of(f16, Shape(64, 96, 57, 57))));  // 78 KB for each block
  EXPECT_FALSE(keeps(pass_of(f16, Shape(1, 256, 27, 27))));  // 32 blocks
  PrimitiveTarget const a100{describe_gpu("a100"), false};
  EXPECT_FALSE(lower(problem, a100).passes.at(0).parameters.policy.bulk);
}

// Planes that are no multiples of 16 bytes are transposed through shared memory.
TEST(PrimitiveProgram, TransposesKeepPlanes) {
  auto const pass_of = [](DataType type, Shape const& shape, TensorFormat to, char const* gpu = "h200") {
    TransformProblem problem{
        describe(type, shape),
        describe(type, image_layout(TensorFormat::nhwc, shape[0], shape[1], shape[2], shape[3]))};
    if (to == TensorFormat::nchw) problem = {problem.y, problem.x};
    validate(problem);
    return lower(problem, {describe_gpu(gpu), false}).passes.at(0);
  };
  for (TensorFormat const to : {TensorFormat::nchw, TensorFormat::nhwc}) {
    PrimitivePass const sevens = pass_of(f16, Shape(64, 2048, 7, 7), to);
    PrimitivePolicy const& policy = sevens.parameters.policy;
    EXPECT_EQ(policy.window.columns, 128);  // channels of a block
    EXPECT_EQ(policy.window.runs_of_columns, to == TensorFormat::nchw);
    EXPECT_EQ(policy.width, 8);
    EXPECT_EQ(policy.along, 8);
    EXPECT_EQ(policy.threads, 128);
    EXPECT_TRUE(policy.bulk);
    EXPECT_EQ(sevens.blocks, 64u * 2048 / 128);
    EXPECT_EQ(sevens.shared_bytes, 128 * 49 * 2 + 48);
    EXPECT_EQ(sevens.bytes, 64.0 * 2048 * 49 * 4);
    PrimitivePass const few = pass_of(f16, Shape(64, 64, 27, 27), to);  // 128 blocks of 32 channels
    EXPECT_EQ(few.parameters.policy.window.columns, 32);
    EXPECT_EQ(few.parameters.policy.threads, 512);
    PrimitivePass const even = pass_of(f16, Shape(64, 256, 14, 14), to);
    EXPECT_EQ(even.parameters.policy.along, 2);
    PrimitivePass const narrow = pass_of(f16, Shape(4096, 16, 5, 5), to);
    EXPECT_EQ(narrow.parameters.policy.window.columns, 16);
    EXPECT_EQ(narrow.parameters.policy.threads, 128);
    EXPECT_EQ(pass_of(f32, Shape(64, 2048, 7, 7), to).parameters.policy.window.columns, 64);
    EXPECT_FALSE(pass_of(f16, Shape(64, 2048, 7, 7), to, "a100").parameters.policy.bulk);
    EXPECT_EQ(pass_of(f16, Shape(64, 2048, 7, 7), to, "t4").parameters.policy.window.columns, 0);
    EXPECT_EQ(pass_of(f16, Shape(64, 256, 28, 28), to).parameters.policy.window.columns, 0);
    EXPECT_EQ(pass_of(f16, Shape(64, 260, 7, 7), to).parameters.policy.window.columns, 0);   // pixels
    EXPECT_EQ(pass_of(f16, Shape(64, 96, 55, 55), to).parameters.policy.window.columns, 0);  // 98 KB
  }
}

// Rows of at least 2 KB have a block of one warp each.
TEST(PrimitiveProgram, SoftmaxOfLongRowsHasBlocksOfAWarp) {
  SoftmaxProblem problem;
  auto const policy_of = [&](DataType type, Index columns) {
    problem.x = problem.y = describe(type, Shape(65536, columns));
    return lower(problem, h200()).passes.at(0).parameters.policy;
  };
  EXPECT_EQ(policy_of(f16, 1024).threads, 32);
  EXPECT_EQ(policy_of(f16, 512).threads, 256);
  EXPECT_EQ(policy_of(f32, 1024).threads, 32);
  EXPECT_EQ(policy_of(f32, 8192).threads, 256);           // a row for each block of 256 threads
  PrimitiveTarget const a10{describe_gpu("a10"), false};  // 16 blocks per multiprocessor
  problem.x = problem.y = describe(f16, Shape(65536, 1024));
  EXPECT_EQ(lower(problem, a10).passes.at(0).parameters.policy.threads, 256);
  problem.x = problem.y = describe(f32, Shape(4, 64, 32, 32));  // rows whose elements are not adjacent
  problem.axis = 1;
  EXPECT_EQ(lower(problem, h200()).passes.at(0).blocks, 128u);
}

TEST(PrimitiveProgram, RunsAreAsWideAsEveryTensorAllows) {
  AddProblem add{describe(f16, Shape(64, 64)), describe(f32, Shape(64, 64)), describe(f16, Shape(64, 64))};
  auto const width = [&] { return lower(add, h200()).passes[0].parameters.policy.width; };
  EXPECT_EQ(width(), 8);
  add.a.alignment = 4;
  EXPECT_EQ(width(), 2);
  add.a.alignment = 16;
  add.b.layout.stride[0] = 65;  // f32 rows are aligned only to one element
  EXPECT_EQ(width(), 1);
  add.b.layout.stride[0] = 66;
  EXPECT_EQ(width(), 2);
  add.b.layout.stride[0] = 68;  // f32 and f16 by 16 bytes
  EXPECT_EQ(width(), 8);
}

TEST(PrimitiveProgram, DropoutsMaskDecidesWhichAxesJoin) {
  auto const chwn = describe(f32, image_layout(TensorFormat::chwn, 8, 3, 4, 5));
  PrimitiveProgram const program = lower(DropoutProblem{chwn, chwn, 0.5, 1}, h200());
  EXPECT_EQ(program.passes[0].parameters.policy.kept, 2);  // the batch is separate from the other axes
  auto const dense = describe(f32, Shape(8, 3, 4, 5));
  EXPECT_EQ(lower(DropoutProblem{dense, dense, 0.5, 1}, h200()).passes[0].parameters.policy.kept, 1);
}

TEST(PrimitiveProgram, InputsThatAreTheSameInAllRunsOfAThreadAreLoadedOnce) {
  BatchNormProblem problem;
  problem.x = problem.y = describe(f16, image_layout(TensorFormat::nhwc, 64, 256, 56, 56));
  problem.statistics = describe(f32, Shape(256));
  validate(problem);
  PrimitivePass const pass = lower(problem, h200()).passes.back();
  ASSERT_EQ(pass.inputs.size(), 4u);
  EXPECT_EQ(pass.parameters.policy.fixed, 0b1110u);
  EXPECT_EQ(pass.parameters.policy.unroll, 4);
  // 96 channels are 12 runs, which do not divide 256 threads.
  problem.x = problem.y = describe(f16, image_layout(TensorFormat::nhwc, 64, 96, 56, 56));
  problem.statistics = describe(f32, Shape(96));
  EXPECT_EQ(lower(problem, h200()).passes.back().parameters.policy.fixed, 0u);
}

TEST(PrimitiveProgram, WindowsThatReachTooFarAreRefusedInASentence) {
  PoolingProblem pool;
  pool.mode = PoolingMode::average_with_padding;
  pool.x = describe(f32, Shape(1, 1, 4, 4));
  pool.y = describe(f32, Shape(1, 1, 2, 2));
  pool.stride[0] = Index{1} << 30;
  EXPECT_NE(lower(pool, h200()).refusal.find("along dimension 2 span"), std::string::npos);
}

}  // namespace
}  // namespace cosmati::plan
