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
#include "cosmati/primitive/transpose_planes.h"
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
                                     {image_layout(TensorFormat::nhwc, 2, 70, 13, 11), 1},
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

// Planes that begin at every place within 16 bytes; pixels with all channels, and padded ones.
TEST(EmulatedTiles, TransposesPlanes) {
  for (DataType const type : {f32, f16})
    for (auto const& [channels, padded, height, width] : {std::tuple{24, 24, 7, 7}, {37, 40, 5, 11}})
      for (bool const back : {false, true}) {
        TensorDescription pixels = describe(type, image_layout(TensorFormat::nhwc, 3, padded, height, width));
        pixels.layout.shape = Shape(3, channels, height, width);
        TransformProblem problem{describe(type, pixels.layout.shape), pixels};
        problem.x.layout.stride[0] += 3;
        if (back) problem = {problem.y, problem.x};
        auto const text = recipe(problem);
        EXPECT_TRUE(has(text, "16 channels of ") && has(text, " positions in shared memory")) << text;
        Trial(problem, 3).expect_fast_and_close(emulator(), {.exact = true});
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

template <class Element, int size, int plane, int groups, bool bulk>
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
    p.bulk = bulk;
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
      static_cast<unsigned>(lrn_shared_runs(policy)) * 16, params);
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

template <bool bulk>
void expect_planes() {
  expect_windows<cosmati::f16, 5, 143, 1, bulk>(2, 37);
  expect_windows<cosmati::bf16, 5, 301, 1, bulk>(2, 19);
  expect_windows<float, 4, 143, 1, bulk>(3, 18);
  expect_windows<float, 1, 129, 1, bulk>(2, 5);
  expect_windows<cosmati::f16, 9, 143, 2, bulk>(1, 70);
  expect_windows<cosmati::f16, 8, 131, 2, bulk>(2, 33);
}

TEST(EmulatedTiles, PlanesWithTypesAndPoliciesOfAGpu) {
  expect_planes<false>();
  expect_planes<true>();
}

template <class Element>
struct Move {
  using Real = Element;
  static constexpr int inputs = 1, outputs = 1;
};

template <class Element, int planes, int lanes, bool bulk>
void expect_transposed(Index images, Index channels, Index pixels, bool back) {
  static constexpr int width = 16 / static_cast<int>(sizeof(Element));
  auto const policy_of = [](bool to_planes) {
    PrimitivePolicy p;
    p.threads = 128;
    p.width = width;
    p.kept = 2;
    p.along = lanes;
    p.unroll = 4;
    p.bulk = bulk;
    p.window.columns = planes;
    p.window.runs_of_columns = to_planes;
    return p;
  };
  using List = AccessList<Elements<Element>>;
  Index const step = (channels + width - 1) / width * width, gap = 3, image = channels * pixels + gap;
  std::vector<Vector<Element, width>> plane_runs(static_cast<std::size_t>(images * image / width + 1)),
      pixel_runs(static_cast<std::size_t>(images * pixels * step / width));
  Element *const in_planes = plane_runs[0].element, *const in_pixels = pixel_runs[0].element;
  for (auto* runs : {&plane_runs, &pixel_runs})
    for (auto& run : *runs) std::fill_n(run.element, width, convert<Element>(-1.0));
  auto const each = [&](auto const& visit) {
    for (Index n = 0; n < images; ++n)
      for (Index c = 0; c < channels; ++c)
        for (Index p = 0; p < pixels; ++p)
          visit(in_planes[n * image + c * pixels + p], in_pixels[(n * pixels + p) * step + c],
                convert<Element>(static_cast<double>((n * 977 + c * 131 + p * 7) % 1999)));
  };
  each([&](Element& plane, Element& pixel, Element value) { (back ? pixel : plane) = value; });
  Index const groups = (channels + planes - 1) / planes;
  PrimitiveParameters params;
  params.axis[0] = Divisor(groups);
  params.axis[1] = Divisor(images);
  params.run_extent = pixels;
  params.classes = static_cast<int>(channels);
  params.window[0].tap_step = step;
  for (bool const of_planes : {false, true}) {
    PrimitiveTensor& tensor = params.tensor[of_planes == back ? primitive_inputs : 0];
    tensor.data = of_planes ? in_planes : in_pixels;
    tensor.stride[0] = of_planes ? planes * pixels : planes;
    tensor.stride[1] = of_planes ? image : pixels * step;
  }
  auto const bytes = static_cast<unsigned>((planes * pixels / width + 3) * 16);
  auto const launch = [&]<bool to_planes>(std::bool_constant<to_planes>) {
    using Traits = PrimitiveTraits<policy_of(to_planes), Move<Element>, List, List>;
    emulator::launch_kernel<transpose_plane_tile_kernel<Traits>>({static_cast<int>(groups * images), 1, 1},
                                                                 128, bytes, params);
  };
  back ? launch(std::true_type()) : launch(std::false_type());
  int wrong = 0;
  each([&](Element plane, Element pixel, Element value) {
    for (Element const moved : {plane, pixel}) wrong += widened<double>(moved) != widened<double>(value);
  });
  EXPECT_EQ(wrong, 0) << channels << " channels of " << pixels;
  // Elements between images and between pixels.
  Index outside = 0, all = 0;
  for (auto const* runs : {&plane_runs, &pixel_runs})
    for (auto const& run : *runs)
      for (Element const element : run.element) ++all, outside += widened<double>(element) == -1;
  EXPECT_EQ(outside, all - 2 * images * channels * pixels);
}

TEST(EmulatedTiles, TransposesPlanesWithPoliciesOfAGpu) {
  for (bool const back : {false, true}) {
    expect_transposed<cosmati::f16, 64, 8, true>(2, 70, 49, back);
    expect_transposed<cosmati::f16, 64, 8, false>(2, 70, 49, back);
    expect_transposed<cosmati::f16, 128, 8, true>(1, 130, 25, back);
    expect_transposed<cosmati::bf16, 32, 2, true>(2, 37, 196, back);
    expect_transposed<float, 32, 8, true>(2, 37, 121, back);
    expect_transposed<float, 16, 4, false>(2, 19, 50, back);
  }
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
