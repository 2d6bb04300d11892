// The primitives' kernels that keep what they have read, in the emulator, against the reference: tiles of
// runs, complete windows, planes, and channels and rows that several blocks share.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "cosmati/arch/emulator.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/normalization.h"
#include "cosmati/ops/softmax.h"
#include "cosmati/primitive/lrn_planes.h"
#include "tests/support/compare.h"

namespace cosmati {
namespace {

using enum DataType;
using test::Trial;
using test::Values;

Device emulator() { return this_device(Backend::emulator, 1); }

template <class Problem>
std::string recipe(Problem const& problem) {
  return make_plan(problem, emulator()).considered[0].recipe;
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

TEST(EmulatedTiles, TransposesRunsToRuns) {
  for (auto const& [image, width] : {std::pair{image_layout(TensorFormat::nhwc, 2, 36, 12, 17), 4},
                                     {image_layout(TensorFormat::nhwc, 2, 70, 12, 12), 1},
                                     {image_layout(TensorFormat::nhwc, 1, 132, 8, 17), 4}})
    for (DataType type : {f32, f16}) {
      Shape const shape = image.shape;
      for (bool const back : {false, true}) {
        TransformProblem problem{describe(f32, shape), describe(type, image)};
        if (back) problem = {problem.y, problem.x};
        auto const text = recipe(problem);
        EXPECT_TRUE(has(text, "transpose")) << text;
        EXPECT_TRUE(has(text, width == 4 ? "runs of 4" : "runs of 1")) << text;
        Trial(problem, 3).expect_fast_and_close(emulator(), {.exact = true});
      }
    }
}

PoolingProblem pooling(TensorFormat format, Index height, Index width, Index taps) {
  PoolingProblem problem;
  for (int i = 0; i < 2; ++i) {
    problem.window[i] = taps;
    problem.stride[i] = 2;
    problem.pad_begin[i] = problem.pad_end[i] = taps == 3 ? 1 : 0;
  }
  auto const windows = [&](Index image) { return (image + 2 * problem.pad_begin[0] - taps) / 2 + 1; };
  problem.x = describe(f32, image_layout(format, 2, 8, height, width));
  problem.y = describe(f32, image_layout(format, 2, 8, windows(height), windows(width)));
  return problem;
}

TEST(EmulatedTiles, WindowsOfColumnsAndOfPlanes) {
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (Index taps : {2, 3})
      for (PoolingMode mode : {PoolingMode::max, PoolingMode::average, PoolingMode::average_with_padding})
        for (DataType index : {s32, u8}) {
          PoolingProblem problem = pooling(format, 13 - taps % 2, 24, taps);
          problem.mode = mode;
          if (mode == PoolingMode::max && taps == 3) problem.indices = describe(index, problem.y.layout);
          SCOPED_TRACE(to_string(problem.x) + " " + name_of(mode));
          auto const text = recipe(problem);
          EXPECT_TRUE(has(text, taps == 2 ? "2 x 2 taps at once" : "3 x 3 taps at once")) << text;
          EXPECT_TRUE(has(text, format == TensorFormat::nchw ? "of columns" : "of planes")) << text;
          Trial(problem, 5).expect_fast_and_close(emulator(), {.terms = 12});
        }
}

// Among equal values, even if all are minus infinity, the first one is the maximum, also at the border.
TEST(EmulatedTiles, TheFirstMaximumCounts) {
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::nhwc}) {
    PoolingProblem problem = pooling(format, 12, 24, 3);
    problem.indices = describe(s32, problem.y.layout);
    Trial trial(problem, 5, Values::small_integers);
    auto& x = trial.input("x");
    for (Index i = 0; i < x.size() / 2; ++i)
      x.set(i,
            i % 7 == 0 ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::infinity());
    trial.expect_fast_and_close(emulator(), {.exact = true});
  }
}

TEST(EmulatedTiles, EachPlaceOfTheGradientLiesInOneWindow) {
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (PoolingMode mode : {PoolingMode::max, PoolingMode::average}) {
      // Rows, and columns if runs do not lie along columns, that no window covers.
      PoolingProblem problem = pooling(format, 13, format == TensorFormat::nchw ? 24 : 21, 2);
      problem.direction = Direction::backward;
      problem.mode = mode;
      EXPECT_TRUE(has(recipe(problem), "taps at once")) << recipe(problem);
      Trial(problem, 5, Values::small_integers).expect_fast_and_close(emulator(), {.terms = 4});
    }
}

TEST(EmulatedTiles, ChannelsOfAThreadShareTheirWindows) {
  for (Direction direction : {Direction::forward, Direction::backward})
    for (Index side : {8, 7}) {
      LrnProblem problem;
      problem.direction = direction;
      problem.x = problem.y = describe(f32, Shape(2, 9, side, side));
      if (direction == Direction::backward) problem.dx = problem.x;
      problem.alpha = 0.3;
      bool const forward = direction == Direction::forward;  // in two groups
      EXPECT_TRUE(has(recipe(problem), forward ? "4 channels per thread" : "2 channels per thread"))
          << recipe(problem);
      Trial(problem, 5).expect_fast_and_close(emulator(), {.terms = 40, .absolute = 1e-6});
    }
}

// Planes that begin at every place within 16 bytes, with gaps between images, and fewer of them than a window
// has.
TEST(EmulatedTiles, BlocksKeepChannelsOfOddPlanes) {
  for (DataType const type : {f32, f16, bf16})
    for (auto const& [shape, gap_of_images] :
         {std::tuple{Shape(3, 9, 9, 9), 0}, {Shape(2, 13, 11, 11), 5}, {Shape(1, 3, 101), 0}}) {
      LrnProblem problem;
      problem.x = problem.y = describe(type, shape);
      for (TensorDescription* tensor : {&problem.x, &problem.y}) tensor->layout.stride[0] += gap_of_images;
      problem.alpha = 3;
      EXPECT_TRUE(has(recipe(problem), "8 channels of ")) << recipe(problem);
      EXPECT_TRUE(has(recipe(problem), " positions in shared memory")) << recipe(problem);
      Trial(problem, 5).expect_fast_and_close(emulator(), {.terms = 40, .absolute = 1e-6});
    }
}

// x and y have different strides: the same elements are at different places within 16 bytes.
TEST(EmulatedTiles, BlocksDoNotKeepPlanesAtDifferentPlaces) {
  LrnProblem problem;
  problem.x = problem.y = describe(f16, Shape(2, 9, 11, 11));
  problem.alpha = 3;
  problem.x.layout.stride[0] += 8;
  EXPECT_TRUE(has(recipe(problem), "in shared memory")) << recipe(problem);
  Trial(problem, 5).expect_fast_and_close(emulator(), {.terms = 40, .absolute = 1e-6});
  problem.x.layout.stride[0] -= 1;
  EXPECT_FALSE(has(recipe(problem), "in shared memory")) << recipe(problem);
  Trial(problem, 5).expect_fast_and_close(emulator(), {.terms = 40, .absolute = 1e-6});
}

// The kernel with the types and policies of a GPU.
struct Function {
  using Real = float;
};

template <class Element, int size, int plane, int groups>
void expect_windows(Index images, Index channels) {
  static constexpr PrimitivePolicy policy = [] {
    PrimitivePolicy p;
    p.threads = 128;
    p.width = 16 / static_cast<int>(sizeof(Element));
    p.unroll = 16;
    p.kept = 3;
    p.columns_axis = 1;
    p.window.rows = p.step = plane;
    p.window.columns = size;
    p.groups = groups;
    return p;
  }();
  using List = AccessList<Elements<Element>>;
  using Traits = PrimitiveTraits<policy, Function, List, List>;
  Index const of_block = 16 * groups, blocks = (channels + of_block - 1) / of_block, image = channels * plane;
  std::vector<Vector<Element, policy.width>> x_runs(
      static_cast<std::size_t>(images * image / policy.width + 1)),
      y_runs(x_runs.size());
  Element *const x = x_runs[0].element, *const y = y_runs[0].element;
  Index const end = static_cast<Index>(y_runs.size()) * policy.width;
  std::fill(y, y + end, convert<Element>(96.0));
  for (Index i = 0; i < images * image; ++i) {
    x[i] = convert<Element>(static_cast<double>(i * 7919 % 31) / 8 - 2);
  }
  PrimitiveParameters params;
  params.axis[0] = Divisor(1);
  params.axis[1] = Divisor(blocks);
  params.axis[2] = Divisor(images);
  params.run_extent = plane;
  params.classes = static_cast<int>(channels);
  params.scalar[0] = 2;
  params.scalar[1] = 0.5;
  params.scalar[2] = 0.75;
  for (int const i : {0, primitive_inputs}) {
    params.tensor[i].data = i == 0 ? x : y;
    params.tensor[i].stride[0] = plane;
    params.tensor[i].stride[1] = of_block * plane;
    params.tensor[i].stride[2] = image;
  }
  emulator::launch_kernel<lrn_plane_tile_kernel<Traits>>(
      {static_cast<int>(blocks * images), 1, 1}, policy.threads,
      static_cast<unsigned>(lrn_elements(policy)) * sizeof(Element), params);
  int wrong = 0;
  for (Index i = 0; i < images * image; ++i) {
    Index const c = i % image / plane;
    double sum = 0;
    for (Index j = c - (size - 1) / 2; j <= c + size / 2; ++j)
      if (j >= 0 && j < channels) sum += std::pow(widened<double>(x[i + (j - c) * plane]), 2);
    double const expected = widened<double>(x[i]) * std::pow(2 + sum / 2, -0.75);
    wrong += !(std::abs(widened<double>(y[i]) - expected) <= (sizeof(Element) == 2 ? 0x1p-8 : 1e-5));
  }
  for (Index i = images * image; i < end; ++i)
    wrong += widened<double>(y[i]) != 96;  // written beyond the end
  EXPECT_EQ(wrong, 0) << "size " << size << ", planes of " << plane;
}

TEST(EmulatedTiles, PlanesWithTypesAndPoliciesOfAGpu) {
  expect_windows<cosmati::f16, 5, 143, 1>(2, 37);
  expect_windows<cosmati::bf16, 5, 301, 1>(2, 19);
  expect_windows<float, 4, 143, 1>(3, 18);
  expect_windows<float, 1, 129, 1>(2, 5);
  expect_windows<cosmati::f16, 9, 143, 2>(1, 70);
  expect_windows<cosmati::f16, 8, 131, 2>(2, 33);
}

TEST(EmulatedTiles, BlocksOfAClusterShareARow) {
  SoftmaxProblem softmax;
  for (DataType const type : {f32, bf16})
    for (bool const logarithm : {false, true}) {
      softmax.x = softmax.y = describe(type, Shape(3, 4000));
      softmax.logarithm = logarithm;
      std::string const kept = type == f32 ? "2 runs kept, " : "2 runs kept packed, ";
      EXPECT_TRUE(has(recipe(softmax), "clusters of 2 blocks, " + kept)) << recipe(softmax);
      Trial trial(softmax, 5);
      for (Index i = 0; i < 3000; ++i)  // some threads and one entire block have no finite value
        trial.input("x").set(i, -std::numeric_limits<double>::infinity());
      trial.expect_fast_and_close(emulator(), {.terms = 300, .absolute = 1e-6});
    }
  softmax.x = softmax.y = describe(f32, Shape(3, 4000));
  softmax.direction = Direction::backward;
  softmax.logarithm = false;
  softmax.dy = softmax.y;
  Trial(softmax, 5).expect_fast_and_close(emulator(), {.terms = 300, .absolute = 1e-6});
}

TEST(EmulatedTiles, RowsOfSixteenBitsAreKeptAsTheyLie) {
  SoftmaxProblem softmax;
  for (Index const length : {4, 132, 1024, 2044}) {
    softmax.x = softmax.y = describe(f16, Shape(5, length));
    EXPECT_TRUE(has(recipe(softmax), "kept packed")) << recipe(softmax);
    Trial(softmax, 5).expect_fast_and_close(emulator(), {.terms = 300, .absolute = 1e-6});
  }
  softmax.x = softmax.y = describe(f16, Shape(5, 130));  // rows that end inside a run
  EXPECT_FALSE(has(recipe(softmax), "kept packed")) << recipe(softmax);
}

// The rows of a block, and of a cluster; the last block has fewer rows than the others.
TEST(EmulatedTiles, LossesOfSixteenBitScoresKeepThemAsTheyLie) {
  for (auto const& [rows, classes] : {std::pair{33, 100}, {5, 4}, {19, 256}, {3, 1000}, {2, 4000}})
    for (bool const gradient : {false, true}) {
      CrossEntropyProblem problem;
      problem.x = describe(bf16, Shape(rows, classes));
      problem.labels = describe(s32, Shape(rows));
      problem.loss = describe(f32, Shape(1));
      if (gradient) problem.dx = problem.x;
      EXPECT_TRUE(has(recipe(problem), "kept packed")) << recipe(problem);
      Trial trial(problem, 5);
      for (int row = 0; row < rows; ++row) trial.input("labels").set(row, row * 7 % classes);
      trial.expect_fast_and_close(emulator(), {.terms = 300, .absolute = 1e-6});
    }
}

TEST(EmulatedTiles, AClusterKeepsAChannel) {
  for (Index images : {1, 3}) {
    BatchNormProblem problem;
    problem.mode = BatchNormMode::training;
    problem.x = problem.y = describe(f32, Shape(images, 5, 44, 44));
    problem.statistics = describe(f32, Shape(5));
    EXPECT_TRUE(has(recipe(problem), "channels 5 of")) << recipe(problem);
    EXPECT_EQ(make_plan(problem, emulator()).workspace_bytes, 0u);
    for (double const slope : {1.0, 0.0, 0.2}) {
      problem.slope = slope;
      Trial(problem, 3).expect_fast_and_close(emulator(), {.terms = 60, .absolute = 1e-4});
    }
  }
}

// Runs of elements of compile-time types, accessed as by kernels compiled for a GPU.
struct Nothing {};

template <class Element, int width>
COSMATI_KERNEL(1, 1)
check_runs_kernel(COSMATI_PARAMETER Nothing) {
  alignas(64) Element memory[width], stored[width];
  for (int i = 0; i < width; ++i) memory[i] = convert<Element>(static_cast<double>(i + 1));
  PrimitiveParameters const params;
  PrimitiveTensor from, to;
  from.data = memory;
  to.data = stored;
  for (int count = 0; count <= width; ++count) {
    using Access = Elements<Element>;
    typename Access::template Raw<width> raw;
    Access::template fetch<width>(params, from, {0, count}, raw);
    float value[width];
    Access::unpack(params, raw, value);
    for (int i = 0; i < width; ++i) EXPECT_EQ(value[i], i < count ? static_cast<float>(i + 1) : 0.0f);
    for (Element& element : stored) element = convert<Element>(96.0);
    Access::store(to, {0, count}, value);
    for (int i = 0; i < width; ++i)
      EXPECT_EQ(widened<float>(stored[i]), i < count ? static_cast<float>(i + 1) : 96.0f);

    using Same = Elements<Element, true>;
    typename Same::template Raw<width> one;
    Same::template fetch<width>(params, from, {0, count}, one);
    Same::unpack(params, one, value);
    for (float const v : value) EXPECT_EQ(v, count > 0 ? 1.0f : 0.0f);
  }
}

template <class Element, int width>
void check_runs() {
  emulator::launch_kernel<check_runs_kernel<Element, width>>({1}, 1, 0, Nothing{});
}

TEST(PrimitiveAccess, FetchesWholeAndPartialRunsOfEveryWidth) {
  check_runs<cosmati::f16, 1>();
  check_runs<cosmati::f16, 2>();
  check_runs<cosmati::f16, 6>();
  check_runs<cosmati::f16, 8>();
  check_runs<cosmati::bf16, 8>();
  check_runs<cosmati::bf16, 16>();
  check_runs<cosmati::e5m2, 4>();
  check_runs<cosmati::s8, 2>();
  check_runs<cosmati::u8, 16>();
  check_runs<float, 4>();
  check_runs<float, 8>();
  check_runs<float, 12>();
}

}  // namespace
}  // namespace cosmati
