// Undefined problems are rejected with a message that contains the values and what is required: products,
// convolutions and pooling.
#include <gtest/gtest.h>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/fully_connected.h"
#include "cosmati/ops/pooling.h"
#include "tests/support/refusal.h"

namespace cosmati {
namespace {

using testing::as_it_is;
using testing::f32_of;
using testing::refusal;

GemmProblem gemm() {
  GemmProblem problem;
  problem.a = f32_of({2, 3, 4});
  problem.b = f32_of({2, 4, 5});
  problem.d = f32_of({2, 3, 5});
  return problem;
}

TEST(ValidateGemm, Shapes) {
  EXPECT_EQ(refusal(gemm(), as_it_is), "");
  EXPECT_EQ(refusal(gemm(),
                    [](GemmProblem& p) {
                      p.b = f32_of({2, 7, 5});
                    }),
            "gemm: b is f32 (2, 7, 5), a is f32 (2, 3, 4); extent 1 of b must be 4, extent 2 of a");
  EXPECT_EQ(refusal(gemm(),
                    [](GemmProblem& p) {
                      p.a = f32_of({3, 4});
                    }),
            "gemm: a is f32 (3, 4), of rank 2; its rank must be 3");
  EXPECT_EQ(refusal(gemm(), [](GemmProblem& p) { p.b = {}; }), "gemm: b is missing");
  EXPECT_EQ(refusal(gemm(),
                    [](GemmProblem& p) {
                      p.a = f32_of({1, 3, 4});
                    }),
            "gemm: a is f32 (1, 3, 4), d is f32 (2, 3, 5); extent 0 of a must be 2, extent 0 of d");
  EXPECT_EQ(refusal(gemm(),
                    [](GemmProblem& p) {
                      p.b = f32_of({4, 4, 5});
                    }),
            "gemm: b is f32 (4, 4, 5), d is f32 (2, 3, 5); extent 0 of b must be 2, extent 0 of d");
  EXPECT_EQ(refusal(gemm(),
                    [](GemmProblem& p) {
                      p.c = f32_of({2, 3, 1});
                    }),
            "gemm: c is f32 (2, 3, 1), d is f32 (2, 3, 5); their shapes must be equal");
}

TEST(ValidateGemm, EmptyProblemsAreLegal) {
  for (int d = 0; d < 4; ++d) {
    Index extent[4] = {2, 3, 5, 4};  // batch, m, n, k
    extent[d] = 0;
    EXPECT_EQ(refusal(gemm(),
                      [&](GemmProblem& p) {
                        p.a = f32_of({extent[0], extent[1], extent[3]});
                        p.b = f32_of({extent[0], extent[3], extent[2]});
                        p.d = f32_of({extent[0], extent[1], extent[2]});
                      }),
              "");
  }
}

TEST(ValidateGemm, Strides) {
  EXPECT_EQ(refusal(gemm(), [](GemmProblem& p) { p.b.layout.stride[0] = 0; }), "");  // a shared operand
  EXPECT_EQ(
      refusal(gemm(), [](GemmProblem& p) { p.d.layout.stride[0] = 0; }),
      "gemm: d is written, but with the strides (0, 5, 1) of (2, 3, 5) its elements (1, 0, 0) and (0, 0, 0) "
      "share an address; row-major strides would be (15, 5, 1)");
  EXPECT_EQ(refusal(gemm(), [](GemmProblem& p) { p.a.layout.stride[1] = -4; }),
            "gemm: a: stride -4 of dimension 1 of (2, 3, 4) is negative");
  EXPECT_EQ(refusal(gemm(), [](GemmProblem& p) { p.a.layout.shape[1] = -3; }),
            "gemm: a: extent -3 of dimension 1 of (2, -3, 4) is negative");
  EXPECT_NE(refusal(gemm(), [](GemmProblem& p) { p.a.layout.stride[0] = Index{1} << 61; }).find("2^62 bytes"),
            std::string::npos);
  Index const huge = Index{1} << 40;
  EXPECT_NE(refusal(gemm(),
                    [&](GemmProblem& p) {
                      p.a = {DataType::f32, {{huge, huge, 1}, {0, 0, 0}}};
                    })
                .find("2^62 bytes"),
            std::string::npos);
}

TEST(ValidateGemm, Epilogue) {
  auto const with = [](char const* text, std::vector<TensorDescription> operands,
                       std::vector<TensorDescription> stores = {}) {
    return [=](GemmProblem& p) { p.epilogue = {epilogue::parse(text), operands, stores}; };
  };
  EXPECT_EQ(refusal(gemm(), with("acc + bias[n]", {f32_of({5})})), "");
  EXPECT_EQ(refusal(gemm(), with("acc + bias[n]", {f32_of({3})})),
            "gemm: bias is f32 (3); its shape must be (5)");
  EXPECT_EQ(refusal(gemm(), with("acc + bias[n, batch]", {f32_of({5, 2})})), "");
  EXPECT_EQ(refusal(gemm(), with("acc + bias[n]", {})),
            "gemm: the epilogue names 1 operands, but 0 are described");
  EXPECT_EQ(refusal(gemm(), with("acc + beta*c", {})),
            "gemm: the epilogue 'acc + beta*c' uses c, but the problem has no c");
  EXPECT_EQ(refusal(gemm(), with("store(pre, acc); acc + 1", {}, {f32_of({2, 3, 5})})), "");
  EXPECT_EQ(refusal(gemm(), with("store(pre, acc); acc + 1", {}, {f32_of({3, 5})})),
            "gemm: pre is f32 (3, 5), d is f32 (2, 3, 5); their shapes must be equal");
  EXPECT_EQ(refusal(gemm(), with("store(pre, acc); acc + 1", {}, {})),
            "gemm: the epilogue names 1 stores, but 0 are described");
}

TEST(ValidateFullyConnected, MatricesOnly) {
  EXPECT_EQ(refusal(fully_connected_forward(f32_of({7, 4}), f32_of({3, 4}), f32_of({7, 3}), {}), as_it_is),
            "");
  EXPECT_NE(refusal(fully_connected_forward(f32_of({7, 4}), f32_of({3, 5}), f32_of({7, 3}), {}), as_it_is)
                .find("extent 1 of b must be 4"),
            std::string::npos);
  try {
    fully_connected_data(f32_of({7, 3}), f32_of({3, 4}), f32_of({7, 4, 1, 1}));
    FAIL();
  } catch (Error const& error) {
    EXPECT_STREQ(error.what(), "fully connected: dx is f32 (7, 4, 1, 1), of rank 4; its rank must be 2");
  }
}

ConvolutionProblem convolution() {
  ConvolutionProblem problem;
  problem.x = f32_of({2, 4, 8, 9});
  problem.w = f32_of({6, 2, 3, 3});
  problem.y = f32_of({2, 6, 6, 7});
  problem.groups = 2;
  return problem;
}

TEST(ValidateConvolution, Shapes) {
  EXPECT_EQ(refusal(convolution(), as_it_is), "");
  EXPECT_EQ(
      refusal(convolution(),
              [](auto& p) {
                p.y = f32_of({2, 6, 6, 8});
              }),
      "convolution forward: y is f32 (2, 6, 6, 8); its extent 3 must be 7: extent 3 of x, 9, with padding "
      "0 + 0, 3 taps of w, dilation 1 and stride 1");
  EXPECT_EQ(
      refusal(convolution(),
              [](auto& p) {
                p.direction = ConvolutionDirection::data;
                p.w = f32_of({6, 4, 3, 3});
              }),
      "convolution data gradient: w is f32 (6, 4, 3, 3); with dx f32 (2, 4, 8, 9) and dy f32 (2, 6, 6, 7) "
      "in 2 groups its first extents must be 6 and 2");
  EXPECT_EQ(
      refusal(convolution(), [](auto& p) { p.groups = 3; }),
      "convolution forward: 3 groups divide 4 channels of x and 6 of y unevenly; both must be multiples "
      "of 3");
  EXPECT_EQ(
      refusal(convolution(),
              [](auto& p) {
                p.y = f32_of({3, 6, 6, 7});
              }),
      "convolution forward: x is f32 (2, 4, 8, 9), y is f32 (3, 6, 6, 7); the number of images, extent 0, "
      "must be equal");
  EXPECT_EQ(
      refusal(convolution(), [](auto& p) { p.dilation[0] = 4; }),
      "convolution forward: the filter does not fit into the padded image: extent 2 of x, 8, with padding "
      "0 + 0, 3 taps of w, dilation 4 and stride 1; it spans 9, but the padded image has 8");
  EXPECT_EQ(refusal(convolution(),
                    [](auto& p) {
                      p.x = f32_of({2, 4, 8});
                    }),
            "convolution forward: x is f32 (2, 4, 8), of rank 3; its rank must be 4");
}

TEST(ValidateConvolution, Numbers) {
  EXPECT_EQ(refusal(convolution(), [](auto& p) { p.stride[0] = 0; }),
            "convolution forward: the vertical stride is 0; it must be at least 1 and below 2^31");
  EXPECT_EQ(refusal(convolution(), [](auto& p) { p.dilation[1] = -1; }),
            "convolution forward: the horizontal dilation is -1; it must be at least 1 and below 2^31");
  EXPECT_EQ(refusal(convolution(), [](auto& p) { p.pad_end[1] = -2; }),
            "convolution forward: the padding at the right is -2; it must be at least 0 and below 2^31");
  EXPECT_EQ(refusal(convolution(), [](auto& p) { p.groups = 0; }),
            "convolution forward: groups is 0; it must be at least 1 and below 2^31");
  EXPECT_EQ(refusal(convolution(),
                    [](auto& p) {
                      p.w = f32_of({6, 2, 0, 3});
                    }),
            "convolution forward: the filter's height is 0; it must be at least 1 and below 2^31");
  EXPECT_NE(refusal(convolution(), [](auto& p) { p.pad_end[0] = Index{1} << 62; }), "");
}

TEST(ValidateConvolution, NoImagesAndNoChannelsAreLegal) {
  EXPECT_EQ(refusal(convolution(),
                    [](auto& p) {
                      p.x = f32_of({0, 4, 8, 9});
                      p.y = f32_of({0, 6, 6, 7});
                    }),
            "");
  EXPECT_EQ(refusal(convolution(),
                    [](auto& p) {
                      p.x = f32_of({2, 0, 8, 9});
                      p.w = f32_of({6, 0, 3, 3});
                    }),
            "");
}

TEST(ValidateConvolution, Bias) {
  ConvolutionProblem problem;
  problem.direction = ConvolutionDirection::bias;
  problem.y = f32_of({2, 6, 6, 7});
  problem.db = f32_of({6});
  EXPECT_EQ(refusal(problem, as_it_is), "");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.db = f32_of({7}); }),
            "convolution bias gradient: db is f32 (7); its shape must be (6)");
  EXPECT_EQ(refusal(problem, [](auto& p) { p.db = {}; }), "convolution bias gradient: db is missing");
}

TEST(ValidateConvolution, Epilogue) {
  auto const with = [](char const* text, std::vector<TensorDescription> operands) {
    return [=](ConvolutionProblem& p) {
      p.epilogue = {epilogue::parse(text, epilogue::convolution_indices), operands, {}};
    };
  };
  EXPECT_EQ(refusal(convolution(), with("relu(acc + bias[k])", {f32_of({6})})), "");
  EXPECT_EQ(refusal(convolution(), with("acc + bias[k]", {f32_of({4})})),
            "convolution forward: bias is f32 (4); its shape must be (6)");
  EXPECT_EQ(refusal(convolution(),
                    [&](auto& p) {
                      with("acc + bias[k]", {f32_of({4})})(p);
                      p.direction = ConvolutionDirection::data;
                    }),
            "");  // k is the output channel: c of dx
  EXPECT_EQ(
      refusal(convolution(),
              [&](auto& p) {
                with("acc * 2", {})(p);
                p.direction = ConvolutionDirection::filter;
              }),
      "convolution filter gradient: the epilogue is 'acc * 2'; only forward and data support an epilogue");
}

PoolingProblem pooling() {
  PoolingProblem problem;
  problem.x = f32_of({2, 3, 7, 8});
  problem.y = f32_of({2, 3, 3, 4});
  return problem;
}

TEST(ValidatePooling, Shapes) {
  EXPECT_EQ(refusal(pooling(), as_it_is), "");
  EXPECT_EQ(refusal(pooling(), [](auto& p) { p.y = f32_of({2, 3, 4, 4}); }), "");  // rounded up
  EXPECT_EQ(
      refusal(pooling(),
              [](auto& p) {
                p.y = f32_of({2, 3, 5, 4});
              }),
      "pooling: y is f32 (2, 3, 5, 4); its extent 2 must be 3, or 4 if rounded up: extent 2 of x, 7, with "
      "padding 0 + 0, a window of 2, dilation 1 and stride 2");
  EXPECT_EQ(refusal(pooling(),
                    [](auto& p) {
                      p.y = f32_of({2, 2, 3, 4});
                    }),
            "pooling: x is f32 (2, 3, 7, 8), y is f32 (2, 2, 3, 4); their first two extents must be equal");
  EXPECT_EQ(refusal(pooling(), [](auto& p) { p.window[0] = 0; }),
            "pooling: the window's height is 0; it must be at least 1 and below 2^31");
  EXPECT_EQ(refusal(pooling(),
                    [](auto& p) {
                      p.x = f32_of({0, 3, 7, 8});
                      p.y = f32_of({0, 3, 3, 4});
                    }),
            "");
}

TEST(ValidatePooling, WindowsWithoutATap) {
  auto const padded = [](PoolingProblem& p) {
    p.pad_begin[1] = 2;
    p.y = f32_of({2, 3, 3, 5});
  };
  EXPECT_EQ(
      refusal(pooling(), padded),
      "pooling: window 0 along dimension 3 has no tap inside the image: extent 8, padding 2 + 0, window 2, "
      "dilation 1, stride 2; only average-with-padding is defined there");
  EXPECT_EQ(refusal(pooling(),
                    [&](auto& p) {
                      padded(p);
                      p.mode = PoolingMode::average_with_padding;
                    }),
            "");
  EXPECT_NE(refusal(pooling(),
                    [](auto& p) {
                      p.pad_end[1] = 2;
                      p.y = f32_of({2, 3, 3, 5});
                    })
                .find("window 4 along dimension 3 has no tap"),
            std::string::npos);
  EXPECT_NE(refusal(pooling(),  // both taps fall outside the image
                    [](auto& p) {
                      p.x = f32_of({2, 3, 7, 1});
                      p.pad_begin[1] = p.pad_end[1] = 1;
                      p.dilation[1] = 2;
                      p.y = f32_of({2, 3, 3, 1});
                    })
                .find("window 0 along dimension 3 has no tap"),
            std::string::npos);
}

TEST(ValidatePooling, Indices) {
  auto const with = [](DataType type, Shape const& shape) {
    return [=](PoolingProblem& p) { p.indices = describe(type, shape); };
  };
  EXPECT_EQ(refusal(pooling(), with(DataType::s32, {2, 3, 3, 4})), "");
  EXPECT_EQ(refusal(pooling(), with(DataType::u8, {2, 3, 3, 4})), "");
  EXPECT_EQ(refusal(pooling(), with(DataType::f32, {2, 3, 3, 4})),
            "pooling: indices is f32 (2, 3, 3, 4); its type must be s32 or u8");
  EXPECT_EQ(refusal(pooling(), with(DataType::s32, {2, 3, 3, 3})),
            "pooling: indices is s32 (2, 3, 3, 3), y is f32 (2, 3, 3, 4); their shapes must be equal");
  EXPECT_EQ(refusal(pooling(),
                    [&](auto& p) {
                      with(DataType::s32, {2, 3, 3, 4})(p);
                      p.mode = PoolingMode::average;
                    }),
            "pooling: indices are given, but the mode is average; only max has indices");
  EXPECT_NE(refusal(pooling(),
                    [](auto& p) {
                      p.x = f32_of({1, 1, 32, 32});
                      p.window[0] = p.window[1] = 17;
                      p.y = f32_of({1, 1, 8, 8});
                      p.indices = describe(DataType::u8, {1, 1, 8, 8});
                    })
                .find("17 x 17 taps exceed the limit of 256"),
            std::string::npos);
}

}  // namespace
}  // namespace cosmati
