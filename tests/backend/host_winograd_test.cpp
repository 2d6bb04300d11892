// Winograd's convolution on the processor: which outputs its tiles compute, results against the reference,
// and for which processors and layers plans choose it.
#include <map>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/processor.h"
#include "src/plan/conv/winograd/winograd_phases.h"
#include "tests/support/compare.h"
#include "tests/support/convolution.h"

namespace cosmati {
namespace {

using plan::WinogradAxis;
using test::Bound;
using test::Choice;
using test::Trial;
using test::Values;

using enum ConvolutionDirection;

// `extent` is that of dx for a data gradient, else that of x.
ConvolutionProblem layer(ConvolutionDirection direction, Index n, Index c, Index k, Index extent, Index taps,
                         Index stride, Index pad, TensorFormat format = TensorFormat::nhwc) {
  ConvolutionProblem p;
  p.direction = direction;
  Index const out = convolution_extent(extent, taps, stride, pad, pad, 1);
  p.x = describe(DataType::f32, image_layout(format, n, c, extent, extent));
  p.y = describe(DataType::f32, image_layout(format, n, k, out, out));
  p.w = describe(DataType::f32, image_layout(TensorFormat::nhwc, k, c, taps, taps));
  for (int i : {0, 1}) {
    p.stride[i] = stride;
    p.pad_begin[i] = p.pad_end[i] = pad;
  }
  return p;
}

// The layer of a DCGAN generator: a transposed convolution of 5x5 taps that doubles rows and columns.
ConvolutionProblem generator_layer(Index images, Index inputs, Index outputs, Index size) {
  ConvolutionProblem p = layer(data, images, outputs, inputs, 2 * size, 5, 2, 1);
  for (int i : {0, 1}) p.pad_end[i] = 2;
  p.y = describe(DataType::f32, image_layout(TensorFormat::nhwc, images, inputs, size, size));
  return p;
}

// Each output, and each (input, tap) of its sum, must occur exactly once.
TEST(HostWinograd, TilesComputeEachOutputFromItsTaps) {
  for (ConvolutionDirection direction : {forward, data})
    for (Index stride = 1; stride <= (direction == data ? 3 : 1); ++stride)
      for (Index taps = 1; taps <= 3 * stride; ++taps)
        for (Index pad = 0; pad < taps; ++pad)
          for (Index extent = std::max<Index>(taps, 7); extent < 11; ++extent) {
            SCOPED_TRACE(std::to_string(taps) + " taps, stride " + std::to_string(stride) + ", pad " +
                         std::to_string(pad) + ", extent " + std::to_string(extent));
            WinogradAxis const axis(layer(direction, 1, 1, 1, extent, taps, stride, pad), 0);
            using Terms = std::multimap<Index, Index>;
            std::map<Index, Terms> expected, found;
            for (Index out = 0; out < axis.outputs; ++out) {
              expected[out];
              for (Index in = 0; in < axis.inputs; ++in)
                for (Index tap = 0; tap < taps; ++tap)
                  if (direction == data ? out == stride * in + tap - pad : in == out + tap - pad)
                    expected[out].emplace(in, tap);
            }
            for (Index phase = 0; phase < axis.stride; ++phase)
              for (Index i = 0; i < 2 * axis.tiles; ++i) {
                Index const u = axis.first + i, out = axis.output(phase, u);
                if (out < 0 || out >= axis.outputs) continue;
                EXPECT_EQ(found.count(out), 0u);
                found[out];
                for (int at = 0; at < 3; ++at) {
                  Index const in = axis.input(u) + at, tap = axis.tap(phase, at);
                  if (tap >= 0 && in >= 0 && in < axis.inputs) found[out].emplace(in, tap);
                }
              }
            EXPECT_EQ(found, expected);
          }
}

TEST(HostWinograd, PhasesShareTilesWithoutWaste) {
  EXPECT_EQ(WinogradAxis(generator_layer(1, 64, 64, 4), 0).tiles, 2);
  EXPECT_EQ(WinogradAxis(layer(data, 1, 1, 1, 16, 4, 2, 1), 0).tiles, 4);
  // Both phases have three taps and cannot be shifted, and one of them starts one output later.
  EXPECT_EQ(WinogradAxis(layer(data, 1, 1, 1, 16, 6, 2, 1), 0).tiles, 5);
}

char const* const epilogues[] = {
    "acc",
    "relu(acc + bias[k])",
    "alpha * acc + residual[n, k, p, q]",
    "let t = acc + bias[k]; store(pre, t); leaky_relu(t, 0.2)",
};

TEST(HostWinograd, AgreesWithTheReference) {
  for (int threads : {1, 3})
    for (ConvolutionDirection direction : {forward, data})
      for (unsigned seed = 0; seed < 40; ++seed) {
        Choice choice(seed);
        Index const stride = direction == data ? choice.of<Index>({1, 2, 2, 3}) : 1;
        Index const taps = choice.between(1, 3 * stride);
        // One large image, in bands of rows; or several, in groups.
        bool const large = choice.heads();
        auto problem =
            layer(direction, large ? 1 : 7, choice.of<Index>({1, 3, 8, 17}), choice.of<Index>({1, 5, 16}),
                  choice.between(large ? 40 : 9, large ? 47 : 14), taps, stride, choice.between(0, taps - 1),
                  choice.of({TensorFormat::nhwc, TensorFormat::nchw, TensorFormat::chwn}));
        test::set_epilogue(problem, epilogues[seed % std::size(epilogues)]);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(threads) + " threads");
        Trial(problem, seed)
            .expect_close(this_device(Backend::cpu, threads), Bound{.terms = 200, .absolute = 1e-5},
                          "winograd");
      }
}

TEST(HostWinograd, PlansChooseItWhereItWasMeasuredToPayOff) {
  Device const laptop = describe_processor("avx2-laptop", 2);
  auto const chosen = [](ConvolutionProblem const& problem, Device const& device) {
    return make_plan(problem, device).kernel == "winograd";
  };
  EXPECT_TRUE(chosen(generator_layer(64, 512, 256, 4), laptop));
  EXPECT_TRUE(chosen(generator_layer(64, 128, 64, 16), laptop));
  EXPECT_TRUE(chosen(layer(forward, 16, 64, 64, 56, 3, 1, 1), laptop));
  EXPECT_TRUE(chosen(layer(data, 16, 64, 64, 56, 3, 1, 1), laptop));
  EXPECT_FALSE(chosen(generator_layer(64, 64, 3, 32), laptop)) << "few channels";
  EXPECT_FALSE(chosen(layer(forward, 1, 512, 512, 7, 3, 1, 1), laptop)) << "few tiles";
  EXPECT_FALSE(chosen(layer(forward, 16, 64, 64, 56, 3, 1, 1, TensorFormat::nchw), laptop)) << "NCHW";
  EXPECT_FALSE(chosen(layer(data, 16, 64, 64, 56, 2, 2, 0), laptop)) << "one tap per phase";
  EXPECT_FALSE(chosen(generator_layer(64, 512, 256, 4), describe_processor("avx2-laptop", 64)))
      << "few tiles";
  EXPECT_FALSE(chosen(generator_layer(64, 512, 256, 4), describe_processor("avx512-server", 2)))
      << "it was not measured";
}

}  // namespace
}  // namespace cosmati
