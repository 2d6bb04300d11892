// Depthwise convolutions and their gradients by threads that walk down the image: emulated against the
// reference, and as compiled.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cosmati/epilogue/parse.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/filter/depthwise_tile_filter.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr char const* kernel = "depthwise_rows";

Geometry channels(Index count, Index taps, Index stride, Index h, Index w) {
  Geometry g;
  g.n = 3, g.c = g.k = g.groups = count;
  g.r = g.s = taps, g.stride[0] = g.stride[1] = stride, g.h = h, g.w = w;
  return g;
}
Geometry padded(Geometry g, Index top, Index left, Index bottom, Index right) {
  g.pad_begin[0] = top, g.pad_begin[1] = left, g.pad_end[0] = bottom, g.pad_end[1] = right;
  return g;
}

PlanOptions only() {
  PlanOptions options;
  options.kernel = kernel;
  return options;
}

// Vectors of 4 channels and single ones, runs that end early, one row or column, and padding that no tap of
// some rows leaves.
std::vector<Geometry> walked() {
  Geometry uneven = channels(8, 3, 2, 10, 9);
  uneven.s = 2, uneven.stride[1] = 1;
  return {padded(channels(12, 3, 1, 9, 7), 1, 1, 1, 1),
          padded(channels(5, 3, 1, 6, 8), 0, 2, 2, 0),
          padded(channels(12, 3, 2, 11, 12), 1, 1, 1, 1),
          padded(channels(5, 3, 2, 8, 9), 0, 0, 1, 2),
          padded(uneven, 1, 0, 0, 1),
          padded(channels(3, 5, 1, 7, 9), 2, 2, 2, 2),
          padded(channels(4, 3, 1, 1, 1), 1, 1, 1, 1),
          padded(channels(4, 3, 2, 17, 1), 2, 1, 2, 1),
          channels(4, 3, 1, 3, 12)};
}

bool is_emulated(Geometry const& g, TensorFormat format) {
  return format == TensorFormat::nhwc || (g.r == 3 && g.s == 3);
}

TEST(DepthwiseRows, EveryLayoutAndGeometry) {
  for (ConvolutionDirection const direction : directions)
    for (TensorFormat const format : formats)
      for (Geometry const& g : walked())
        if (is_emulated(g, format))
          expect_right(problem_of(direction, DataType::f32, DataType::f32, format, g), kernel);
}

// Phases of different lengths, paddings that are not multiples of the dilation, and phases without a result.
TEST(DepthwiseRows, DilatedTapsAreThoseOfOnePhase) {
  Geometry even = padded(channels(12, 3, 1, 14, 14), 2, 2, 2, 2),
           uneven = padded(channels(5, 3, 1, 11, 9), 1, 3, 0, 2),
           few = padded(channels(4, 3, 1, 7, 2), 0, 5, 0, 3),
           long_rows = padded(channels(8, 3, 1, 40, 5), 2, 0, 3, 1);
  even.dilation[0] = even.dilation[1] = 2;
  uneven.dilation[0] = 2, uneven.dilation[1] = 3;
  few.dilation[0] = 3, few.dilation[1] = 4;
  long_rows.dilation[0] = 3;
  for (Geometry const& g : {even, uneven, few, long_rows})
    for (ConvolutionDirection const direction : directions)
      for (TensorFormat const format : formats) {
        auto p = problem_of(direction, DataType::f32, DataType::f32, format, g);
        expect_right(p, kernel);
        if (direction == ConvolutionDirection::filter) continue;
        TensorDescription const& result = direction == ConvolutionDirection::forward ? p.y : p.x;
        p.epilogue.expression = epilogue::parse("acc + rest[n, k, p, q]", epilogue::convolution_indices);
        p.epilogue.operands = {describe(DataType::f32, result.shape())};
        expect_right(p, kernel);
      }
}

TEST(DepthwiseRows, OtherTypes) {
  for (ConvolutionDirection const direction : directions)
    for (DataType const type : {DataType::f16, DataType::bf16})
      for (DataType const result : {type, DataType::f32})
        expect_right(problem_of(direction, type, result, TensorFormat::nhwc, walked()[2]), kernel);
  for (ConvolutionDirection const direction : directions)
    expect_right(problem_of(direction, DataType::tf32, DataType::f32, TensorFormat::nhwc, walked()[2]),
                 kernel);
}

// Inputs in tf32 have the bits of f32 and the same kernel.
TEST(DepthwiseRows, InputsInTf32AreReadAsF32) {
  for (ConvolutionDirection const direction : directions) {
    auto const kernel_of = [&](DataType type) {
      return main_source(make_plan(
          problem_of(direction, type, DataType::f32, TensorFormat::nhwc, channels(32, 3, 1, 28, 28)),
          described_h200(), only()));
    };
    EXPECT_EQ(kernel_of(DataType::tf32).text, kernel_of(DataType::f32).text);
  }
}

TEST(DepthwiseRows, ChannelsAreReadTogetherWhereTheyAreContiguous) {
  for (ConvolutionDirection const direction : directions)
    for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc})
      for (Index const count : {12, 5}) {
        auto const p =
            problem_of(direction, DataType::f32, DataType::f32, format, channels(count, 3, 1, 9, 9));
        auto const recipe = make_plan(p, emulated_device(), only()).recipe;
        auto const* const filter = std::get_if<DepthwiseRowsFilterRecipe>(&recipe.own);
        DepthwiseRowsShape const shape =
            filter != nullptr ? filter->shape : std::get<DepthwiseRowsRecipe>(recipe.own).shape;
        EXPECT_EQ(shape.channels_last, format == TensorFormat::nhwc);
        EXPECT_EQ(shape.vector, format == TensorFormat::nhwc && count == 12 ? 4 : 1);
      }
}

TEST(DepthwiseRows, EpiloguesSeeTheResultsIndices) {
  for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data})
    for (TensorFormat const format : formats)
      for (Geometry const& g : {walked()[0], walked()[3]}) {
        auto p = problem_of(direction, DataType::f32, DataType::f32, format, g);
        TensorDescription const& result = direction == ConvolutionDirection::forward ? p.y : p.x;
        p.epilogue.expression = epilogue::parse("relu(2 * acc + bias[k] - row[p, n]) + rest[n, k, p, q]",
                                                epilogue::convolution_indices);
        p.epilogue.operands = {describe(DataType::f32, {result.extent(1)}),
                               describe(DataType::f32, {result.extent(2), result.extent(0)}),
                               describe(DataType::f32, result.shape())};
        expect_right(p, kernel);
      }
}

TEST(DepthwiseRows, FilterGradientsAreAddedInParts) {
  auto const p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nhwc,
                            padded(channels(8, 3, 1, 22, 21), 1, 1, 1, 1));
  auto const plan = make_plan(p, emulated_device(), only());
  EXPECT_GT(std::get<DepthwiseRowsFilterRecipe>(plan.recipe.own).parts, 1);
  expect_right(p, kernel);
}

// With stride 2 and without padding no window reaches the last row and column of 8.
void expect_finite(TensorFormat format, Index images) {
  Geometry g = channels(4, 3, 2, 8, 8);
  g.n = images;
  auto const p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, format, g);
  auto const prepared = prepare(make_plan(p, emulated_device(), only()));
  Tensor x = filled(p.x, 1), dy = filled(p.y, 2), dw = filled(p.w, 3);
  auto const& stride = p.x.layout.stride;
  for (Index n = 0; n < g.n; ++n)
    for (Index c = 0; c < g.c; ++c)
      for (Index i = 0; i < 8; ++i)
        for (Index const at : {7 * stride[2] + i * stride[3], i * stride[2] + 7 * stride[3]})
          store(DataType::f32, x.data(), n * stride[0] + c * stride[1] + at,
                std::numeric_limits<double>::infinity());
  ConvolutionProblem::Arguments arguments;
  arguments.x = x.data(), arguments.dy = dy.data(), arguments.dw = dw.data();
  Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
  prepared.run(arguments, workspace.data());
  for (Index i = 0; i < p.w.layout.span(); ++i)
    EXPECT_TRUE(std::isfinite(load(DataType::f32, dw.data(), i))) << i;
}
TEST(DepthwiseRows, InfinitiesThatNoWindowContainsStayThere) {
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (Index const images : {2, 3}) expect_finite(format, images);
}

std::string refusal(Geometry const& g, DataType type = DataType::f32) {
  auto const p = problem_of(ConvolutionDirection::forward, type, type == DataType::s8 ? DataType::s32 : type,
                            TensorFormat::nhwc, g);
  return entry_of(make_plan(p, described_h200()).considered, kernel).refusal;
}

TEST(DepthwiseRows, RefusesWhatItCannotKeepInRegisters) {
  EXPECT_EQ(refusal(channels(16, 3, 1, 20, 20)), "");
  EXPECT_EQ(refusal(channels(16, 9, 1, 20, 20)), "9 taps; threads keep 1 to 7 per direction");
  EXPECT_EQ(refusal(channels(16, 3, 3, 20, 20)), "stride 3; at most 2");
  EXPECT_EQ(refusal(channels(16, 3, 1, 20, 20), DataType::s8),
            "s8 operands; valid types: f32, f16, bf16, and tf32 for inputs");
  EXPECT_EQ(refusal(channels(16, 3, 1, 20, 20), DataType::tf32),
            "tf32 operands; valid types: f32, f16, bf16, and tf32 for inputs");
  Geometry dilated = channels(16, 3, 1, 20, 20), many = dilated;
  dilated.dilation[1] = 2, many.k = 32;
  EXPECT_EQ(refusal(dilated), "");
  dilated.stride[0] = 2;
  EXPECT_EQ(refusal(dilated), "dilation 2 with stride 2; only one of them may exceed 1");
  EXPECT_EQ(refusal(many),
            "16 channels and 32 filters in 16 groups; each channel must form its own group, with one filter");
}

// 64 images, as measured on an H200: 304, 252 and 336 blocks of whole columns are divided where that leaves
// no multiprocessor with more blocks than the others, and only there.
TEST(DepthwiseRows, PartsFillTheMultiprocessorsEvenly) {
  auto const rows = [](Index count, Index taps, Index extent) {
    Geometry g = padded(channels(count, taps, 1, extent, extent), taps / 2, taps / 2, taps / 2, taps / 2);
    g.n = 64;
    auto const plan = make_plan(
        problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nhwc, g),
        described_h200(), only());
    return std::get<DepthwiseRowsRecipe>(plan.recipe.own).groups_of_part;
  };
  EXPECT_EQ(rows(128, 3, 74), 25);
  EXPECT_EQ(rows(144, 3, 56), 28);
  EXPECT_EQ(rows(672, 5, 14), 14);
}

// With 7x7 taps, runs of eight columns where runs of seven leave half or a third of the last one over.
TEST(DepthwiseRows, RunsOfSevenOrEightColumns) {
  auto const run = [](Index columns) {
    Geometry g = padded(channels(64, 7, 1, columns, columns), 3, 3, 3, 3);
    g.n = 512;
    auto const plan = make_plan(
        problem_of(ConvolutionDirection::forward, DataType::f16, DataType::f16, TensorFormat::nhwc, g),
        described_h200(), only());
    return std::get<DepthwiseRowsRecipe>(plan.recipe.own).shape.run;
  };
  for (Index const columns : {8, 15, 16}) EXPECT_EQ(run(columns), 8) << columns;
  for (Index const columns : {7, 12, 14, 24, 40, 56}) EXPECT_EQ(run(columns), 7) << columns;
}

// The walk of a single image's thread would take as long as that of many images' threads, so it is cut into
// single groups of rows, and into shorter runs, until every multiprocessor has a block.
TEST(DepthwiseRows, FewImagesAreComputedByManyThreads) {
  auto const planned = [](ConvolutionDirection direction, Index images) {
    Geometry g = padded(channels(384, 7, 1, 14, 14), 3, 3, 3, 3);
    g.n = images;
    return make_plan(problem_of(direction, DataType::bf16, DataType::bf16, TensorFormat::nhwc, g),
                     described_h200(), only());
  };
  for (ConvolutionDirection const direction : {ConvolutionDirection::forward, ConvolutionDirection::data}) {
    auto const few = std::get<DepthwiseRowsRecipe>(planned(direction, 1).recipe.own),
               many = std::get<DepthwiseRowsRecipe>(planned(direction, 64).recipe.own);
    EXPECT_TRUE(few.shape.alone);
    EXPECT_EQ(few.groups_of_part, 1);
    EXPECT_EQ(few.shape.run, 4);
    EXPECT_FALSE(many.shape.alone);
    EXPECT_EQ(many.shape.run, 7);
  }
  auto const many = std::get<DepthwiseRowsFilterRecipe>(planned(ConvolutionDirection::filter, 64).recipe.own);
  EXPECT_FALSE(many.shape.alone);
}

Plan<ConvolutionProblem> filter_plan(DataType type, Geometry const& g) {
  return make_plan(problem_of(ConvolutionDirection::filter, type, type, TensorFormat::nhwc, g),
                   described_h200(), only());
}
Geometry images(Index n, Index count, Index taps, Index extent) {
  Geometry g = padded(channels(count, taps, 1, extent, extent), taps / 2, taps / 2, taps / 2, taps / 2);
  g.n = n;
  return g;
}

// Every multiprocessor has a block at once, with all its pixels, and there is no second launch.
TEST(DepthwiseRows, FilterGradientsOfFewPixelsAreOneLaunch) {
  for (Geometry const& g : {images(1, 768, 7, 7), images(4, 480, 3, 14), images(2, 960, 5, 7),
                            images(8, 768, 7, 7), images(4, 240, 5, 28)})
    for (DataType const type : {DataType::bf16, DataType::f32}) {
      auto const plan = filter_plan(type, g);
      ASSERT_TRUE(std::holds_alternative<DepthwiseTileRecipe>(plan.recipe.own));
      auto const recipe = std::get<DepthwiseTileRecipe>(plan.recipe.own);
      EXPECT_EQ(plan::program_of(plan).steps.size(), 1);
      EXPECT_EQ(plan.workspace_bytes, 0);
      EXPECT_GE(g.c / recipe.shape.channels * recipe.shape.cluster, 96);
      EXPECT_GE(Index{recipe.units_of_block} * recipe.shape.cluster, g.n * recipe.row_parts);
      EXPECT_LE(recipe.shape.threads(), 1024);
      EXPECT_EQ(jit::nvrtc_available() ? jit::compile(main_source(plan)).local_bytes : 0, 0);
    }
  // Pixels that are not units of 8 bytes, and more pixels than fit.
  auto const is_walk = [](Geometry const& g) {
    return std::holds_alternative<DepthwiseRowsFilterRecipe>(filter_plan(DataType::bf16, g).recipe.own);
  };
  EXPECT_TRUE(is_walk(images(1, 150, 7, 14)));
  EXPECT_TRUE(is_walk(images(64, 144, 3, 56)));
  EXPECT_TRUE(is_walk(images(32, 240, 5, 28)));
}

// Clusters of one, two and four blocks; parts of the images, of which the last is shorter; runs that end
// early, and those that are a whole row; and tiles of one to eight channels.
TEST(DepthwiseRows, FilterGradientsOfFewPixelsInSharedMemory) {
  Geometry uneven = channels(8, 3, 2, 10, 9);
  uneven.s = 2, uneven.stride[1] = 1;
  struct Case {
    Geometry geometry;
    int cluster, whole;
  };
  for (Case const& c :
       {Case{padded(channels(12, 3, 1, 9, 7), 1, 1, 1, 1), 4, 7},
        Case{padded(channels(12, 3, 1, 7, 7), 1, 1, 1, 1), 2, 7},
        Case{padded(channels(4, 3, 1, 3, 7), 1, 1, 1, 1), 1, 7},
        Case{padded(channels(12, 3, 1, 9, 7), 1, 2, 1, 0), 4, 0},
        Case{padded(channels(8, 3, 2, 7, 7), 1, 1, 1, 1), 1, 7},
        Case{padded(channels(8, 3, 2, 12, 7), 1, 1, 2, 1), 2, 7},
        Case{padded(channels(5, 3, 1, 6, 8), 0, 2, 2, 0), 2, 0},
        Case{padded(channels(12, 3, 2, 23, 12), 1, 1, 1, 1), 4, 0},
        Case{padded(channels(8, 3, 2, 8, 9), 0, 0, 1, 2), 1, 0}, Case{padded(uneven, 1, 0, 0, 1), 2, 0},
        Case{padded(channels(4, 5, 1, 7, 9), 2, 2, 2, 2), 2, 0},
        Case{padded(channels(8, 3, 1, 5, 4), 1, 1, 1, 1), 2, 0},
        Case{padded(channels(4, 3, 1, 1, 1), 1, 1, 1, 1), 1, 0}, Case{channels(4, 3, 1, 3, 12), 1, 0}}) {
    Geometry g = c.geometry;
    g.n = plan::emulated_tile_images;
    for (DataType const type : {DataType::f32, DataType::bf16}) {
      auto const p = problem_of(ConvolutionDirection::filter, type, DataType::f32, TensorFormat::nhwc, g);
      auto const recipe = make_plan(p, emulated_device(), only()).recipe;
      ASSERT_TRUE(std::holds_alternative<DepthwiseTileRecipe>(recipe.own));
      DepthwiseTileShape const shape = std::get<DepthwiseTileRecipe>(recipe.own).shape;
      EXPECT_EQ(shape.cluster, c.cluster) << g.h << 'x' << g.w;
      EXPECT_EQ(shape.whole, c.whole) << g.h << 'x' << g.w;
      expect_right(p, kernel);
    }
  }
}

// A thread that processed several single rows of dy one after another would load each row of x several times.
TEST(DepthwiseRows, FilterGradientsOfManyRowsWalk) {
  auto const rows_of = [](Index images, Index count, Index taps, Index extent, Index dilation) {
    Geometry g = padded(channels(count, taps, 1, extent, extent), 1, 1, 1, 1);
    g.n = images, g.dilation[0] = g.dilation[1] = dilation;
    auto const plan = make_plan(
        problem_of(ConvolutionDirection::filter, DataType::bf16, DataType::bf16, TensorFormat::nhwc, g),
        described_h200(), only());
    return std::get<DepthwiseRowsFilterRecipe>(plan.recipe.own).groups_of_part;
  };
  EXPECT_GT(rows_of(64, 32, 3, 112, 1), 8);
  EXPECT_GT(rows_of(32, 32, 3, 112, 2), 8);
  EXPECT_GT(rows_of(16, 96, 7, 56, 1), 8);
  EXPECT_EQ(rows_of(4, 482, 3, 14, 1), 1);
}

// The emulator computes single groups for single images. More channels than a block has threads, and fewer,
// so that the filters of a block begin in the middle and again at the first channel.
TEST(DepthwiseRows, SingleGroupsAndFiltersOfABlock) {
  for (Index const count : {12, 5, 200, 600})
    for (Index const stride : {1, 2})
      for (Index const images : {1, 3}) {
        Geometry g = padded(channels(count, 3, stride, 9, 7), 1, 1, 1, 1);
        g.n = images;
        for (ConvolutionDirection const direction : directions) {
          auto const p = problem_of(direction, DataType::f32, DataType::f32, TensorFormat::nhwc, g);
          auto const own = make_plan(p, emulated_device(), only()).recipe.own;
          auto const* const filter = std::get_if<DepthwiseRowsFilterRecipe>(&own);
          DepthwiseRowsShape const shape =
              filter != nullptr ? filter->shape : std::get<DepthwiseRowsRecipe>(own).shape;
          EXPECT_EQ(shape.alone, images == 1);
          EXPECT_EQ(shape.packed_filter, filter == nullptr);
          expect_right(p, kernel);
        }
      }
}

// Sums and filters have constant indices after unrolling; a single index that is not constant would put all
// of them in local memory.
TEST(DepthwiseRows, CompilesWithoutLocalMemory) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  for (ConvolutionDirection const direction : directions) {
    Geometry g = padded(channels(480, 3, 1, 14, 14), 1, 1, 1, 1);
    g.n = 64;
    auto const plan = make_plan(problem_of(direction, DataType::bf16, DataType::bf16, TensorFormat::nhwc, g),
                                described_h200(), only());
    EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0)
        << "bf16, direction " << static_cast<int>(direction);
  }
  for (ConvolutionDirection const direction : directions)
    for (Index const stride : {1, 2}) {
      Geometry g = padded(channels(96, stride == 1 ? 5 : 3, stride, 28, 28), 1, 1, 1, 1);
      g.n = 32;
      auto const p = problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, g);
      auto const plan = make_plan(p, described_h200(), only());
      EXPECT_EQ(jit::compile(main_source(plan)).local_bytes, 0)
          << "stride " << stride << ", direction " << static_cast<int>(direction);
      Geometry few = padded(channels(384, stride == 1 ? 7 : 3, stride, 14, 14), 1, 1, 1, 1);
      few.n = 1;
      if (direction == ConvolutionDirection::filter)
        few.c = few.k = few.groups = 386;  // not in shared memory
      auto const alone =
          make_plan(problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, few),
                    described_h200(), only());
      EXPECT_EQ(jit::compile(main_source(alone)).local_bytes, 0)
          << "one image, stride " << stride << ", direction " << static_cast<int>(direction);
      if (stride == 2) continue;
      for (Index const taps : {3, 5}) {
        Geometry dilated = padded(channels(96, taps, 1, 28, 28), 4, 4, 4, 4);
        dilated.n = 32, dilated.dilation[0] = dilated.dilation[1] = 2;
        auto const of =
            make_plan(problem_of(direction, DataType::f16, DataType::f16, TensorFormat::nhwc, dilated),
                      described_h200(), only());
        EXPECT_EQ(jit::compile(main_source(of)).local_bytes, 0)
            << taps << " dilated taps, direction " << static_cast<int>(direction);
      }
    }
}

}  // namespace
}  // namespace cosmati
