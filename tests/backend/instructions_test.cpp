// Known errors of oneDNN with some instruction sets. CTest runs these tests once more for each set that
// ONEDNN_MAX_CPU_ISA names, because oneDNN reads the variable when its module is loaded.
#include <cstdlib>
#include <limits>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "cosmati/ops/softmax.h"
#include "src/backend/cpu/runtime/module.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

Device two_threads() { return this_device(Backend::cpu, 2); }

ConvolutionProblem strided_point_gradient(TensorFormat format, Index channels, Index filters, Index rows,
                                          Index columns) {
  ConvolutionProblem p;
  p.direction = ConvolutionDirection::filter;
  p.stride[0] = rows;
  p.stride[1] = columns;
  p.x = describe(DataType::f32, image_layout(format, 2, channels, 7 * rows, 6 * columns));
  p.y = describe(DataType::f32, image_layout(format, 2, filters, 7, 6));
  p.w = describe(DataType::f32, image_layout(TensorFormat::nchw, filters, channels, 1, 1));
  return p;
}

TEST(Instructions, FilterGradientsOfPointsWithStrides) {
  unsigned seed = 0;
  for (auto format : {TensorFormat::nhwc, TensorFormat::nchw})
    for (Index channels : {1, 2, 4, 6, 7, 9, 15, 16, 17})
      for (Index filters : {1, 5, 8, 17})
        for (auto [rows, columns] : {std::pair<Index, Index>{1, 2}, {2, 1}, {3, 2}, {2, 3}}) {
          auto const p = strided_point_gradient(format, channels, filters, rows, columns);
          SCOPED_TRACE(to_string(p.x) + " " + to_string(p.y));
          test::Trial(p, ++seed).expect_close(two_threads(), {.terms = 2 * 42 * 2});
        }
}

// oneDNN writes beyond its scratchpad here, also with AVX-512, where the sums are still correct.
TEST(Instructions, FewChannelsInTheFilterGradientOfPointsWithStridesAreRefused) {
  Device const device = two_threads();
  if (!device.onednn || !device.avx2 || std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr)
    GTEST_SKIP()
        << "oneDNN's kernels of 1x1 filters need AVX2; with ONEDNN_MAX_CPU_ISA their results are tested";
  auto const refusal = [&](Index channels, Index stride) {
    auto const plan =
        make_plan(strided_point_gradient(TensorFormat::nhwc, channels, 8, stride, stride), device);
    for (auto const& candidate : plan.considered)
      if (candidate.kernel == "onednn_plain") return candidate.refusal;
    return std::string("not considered");
  };
  EXPECT_NE(refusal(15, 2).find("x has 15 channels in NHWC"), std::string::npos) << refusal(15, 2);
  EXPECT_EQ(refusal(16, 2), "");
  EXPECT_EQ(refusal(15, 1), "");
}

// Sums of two byte products that overflow 16 bits: without VNNI oneDNN would saturate them.
TEST(Instructions, ProductsOfLargeBytesAreExact) {
  for (DataType first : {DataType::u8, DataType::s8})
    for (double sign : {1.0, -1.0}) {
      SCOPED_TRACE(std::string(name_of(first)) + (sign > 0 ? ", positive" : ", negative"));
      double const largest = first == DataType::u8 ? 255 : 127;
      ConvolutionProblem c;
      c.x = describe(first, image_layout(TensorFormat::nhwc, 1, 32, 6, 6));
      c.w = describe(DataType::s8, image_layout(TensorFormat::nchw, 16, 32, 3, 3));
      c.y = describe(DataType::s32, image_layout(TensorFormat::nhwc, 1, 16, 4, 4));
      test::Trial convolution(c, 1);
      for (Index i = 0; i < c.x.layout.size(); ++i) convolution.input("x").set(i, largest);
      for (Index i = 0; i < c.w.layout.size(); ++i) convolution.input("w").set(i, sign * 127);
      convolution.expect_fast_and_close(two_threads(), {.exact = true});

      GemmProblem g;
      g.a = describe(first, Shape{1, 16, 64});
      g.b = describe(DataType::s8, Shape{1, 64, 32});
      g.d = describe(DataType::s32, Shape{1, 16, 32});
      test::Trial product(g, 2);
      for (Index i = 0; i < g.a.layout.size(); ++i) product.input("a").set(i, largest);
      for (Index i = 0; i < g.b.layout.size(); ++i) product.input("b").set(i, sign * 127);
      product.expect_fast_and_close(two_threads(), {.exact = true});
    }
}

// A row with NaN or +Inf, or with only -Inf, becomes NaN; other rows are unaffected.
TEST(Instructions, RowsOfSoftmaxThatAreUndefined) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  unsigned seed = 0;
  for (bool logarithm : {false, true})
    for (int axis : {0, 1, 2})
      for (Index extent : {1, 3, 20, 70})
        for (double value : {std::nan(""), infinity, -infinity}) {
          SoftmaxProblem p;
          p.logarithm = logarithm;
          p.axis = axis;
          Shape shape{4, 5, 6};
          shape[axis] = extent;
          p.x = p.y = describe(DataType::f32, shape);
          SCOPED_TRACE(to_string(p.x) + " axis " + std::to_string(axis) + " value " + std::to_string(value));
          test::Trial trial(p, ++seed);
          trial.input("x").set(p.x.layout.size() / 2, value);
          for (Index i = 0; i < extent; ++i) {  // a row with only -Inf
            Index at[3] = {0, 0, 0};
            at[axis] = i;
            trial.input("x").set((at[0] * shape[1] + at[1]) * shape[2] + at[2], -infinity);
          }
          trial.expect_fast_and_close(two_threads(),
                                      {.relative = 1e-5, .absolute = 1e-5, .uses_magnitude = false});
        }
}

// oneDNN's log-softmax is off by 1.4e-6 here.
TEST(Instructions, LogSoftmaxOfSingleElementsIsZero) {
  unsigned seed = 0;
  for (int axis : {0, 1, 2}) {
    SoftmaxProblem p;
    p.logarithm = true;
    p.axis = axis;
    Shape shape{4, 5, 6};
    shape[axis] = 1;
    p.x = p.y = describe(DataType::f32, shape);
    test::Trial trial(p, ++seed);
    trial.expect_fast_and_close(two_threads(), {.relative = 0, .absolute = 0, .uses_magnitude = false});
  }
}

// The error of oneDNN's gradients was up to 56 times the bound for a row that cancels.
TEST(Instructions, GradientsOfLogSoftmaxAreNotLeftToOneDnn) {
  SoftmaxProblem p;
  p.direction = Direction::backward;
  p.logarithm = true;
  p.axis = 1;
  p.x = p.y = p.dy = describe(DataType::f32, Shape{64, 16});
  EXPECT_EQ(make_plan(p, two_threads()).kernel, "by_rows");
}

TEST(Instructions, GradientsOfRowsOfSoftmaxThatAreUndefined) {
  unsigned seed = 0;
  for (bool logarithm : {false, true})
    for (int axis : {0, 1, 2})
      for (char const* input : {"y", "dy"}) {
        SoftmaxProblem p;
        p.direction = Direction::backward;
        p.logarithm = logarithm;
        p.axis = axis;
        p.x = p.y = p.dy = describe(DataType::f32, Shape{4, 20, 6});
        SCOPED_TRACE(std::string(input) + " axis " + std::to_string(axis));
        test::Trial trial(p, ++seed);
        trial.input(input).set(p.x.layout.size() / 2, std::nan(""));
        trial.expect_fast_and_close(two_threads(),
                                    {.relative = 1e-4, .absolute = 1e-4, .uses_magnitude = false});
      }
}

TEST(OnednnVersion, IsNamedWhereItIsRefused) {
  EXPECT_EQ(cpu::violates_onednn_version("2.6.3"), "");
  EXPECT_EQ(cpu::violates_onednn_version("2.7.5"), "");
  for (char const* version : {"2.5.0", "2.60.1", "3.2.0", "3.13.0"})
    EXPECT_EQ(cpu::violates_onednn_version(version),
              "libdnnl " + std::string(version) + " was found; it must be of version 2.6 or 2.7");
}

}  // namespace
}  // namespace cosmati
