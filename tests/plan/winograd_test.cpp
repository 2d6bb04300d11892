// Winograd convolution: its matrices, the emulator's results, and their error.
#include <gtest/gtest.h>

#include <cmath>

#include "cosmati/conv/winograd/winograd_matrices.h"
#include "cosmati/epilogue/parse.h"
#include "src/backend/cuda/executor.h"
#include "src/jit/compile.h"
#include "src/jit/nvrtc.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/conv/winograd/winograd_bound.h"
#include "tests/plan/convolution_cases.h"

namespace cosmati {
namespace {

constexpr ConvolutionDirection both[] = {ConvolutionDirection::forward, ConvolutionDirection::data};

// sum over x of A(i, x) G(x, r) B(x, l) is 1 where l = i + r, else 0: so y(i) = sum over r of g(r) d(i + r).
template <int tile, int taps = 3>
double largest_deviation() {
  using Matrices = WinogradMatrices<tile, taps>;
  double largest = 0;
  for (int i = 0; i < tile; ++i)
    for (int r = 0; r < Matrices::taps; ++r)
      for (int l = 0; l < Matrices::size; ++l) {
        double sum = l == i + r ? -1 : 0;
        for (int x = 0; x < Matrices::size; ++x)
          sum += static_cast<double>(Matrices::output(i, x)) * Matrices::filter(x, r) *
                 static_cast<double>(Matrices::input(x, l));
        largest = std::max(largest, std::fabs(sum));
      }
  return largest;
}

// The same for the taps of a filter gradient: y(r) = sum over i of g(i) d(i + r).
template <int tile>
double largest_deviation_of_taps() {
  using Matrices = WinogradMatrices<tile>;
  double largest = 0;
  for (int r = 0; r < Matrices::taps; ++r)
    for (int i = 0; i < tile; ++i)
      for (int l = 0; l < Matrices::size; ++l) {
        double sum = l == i + r ? -1 : 0;
        for (int x = 0; x < Matrices::size; ++x)
          sum += static_cast<double>(Matrices::tap(r, x)) * Matrices::gradient(x, i) *
                 static_cast<double>(Matrices::input(x, l));
        largest = std::max(largest, std::fabs(sum));
      }
  return largest;
}

TEST(Winograd, TheMatricesMakeACorrelation) {
  EXPECT_EQ(largest_deviation<2>(), 0);
  EXPECT_LT(largest_deviation<4>(), 1e-15);
  EXPECT_LT((largest_deviation<4, 5>()), 1e-15);
  EXPECT_EQ(largest_deviation_of_taps<2>(), 0);
  EXPECT_LT(largest_deviation_of_taps<4>(), 1e-15);
}

Geometry padded() {
  Geometry g;
  g.pad_begin[0] = g.pad_begin[1] = g.pad_end[0] = g.pad_end[1] = 1;
  return g;
}
Geometry ragged() {  // no extent is a multiple of a tile
  Geometry g;
  g.n = 3, g.c = 5, g.k = 7, g.h = 10, g.w = 9;
  g.pad_begin[0] = 2, g.pad_end[1] = 1;
  return g;
}
Geometry single() {  // the smallest image
  Geometry g;
  g.n = 1, g.c = 1, g.k = 9, g.h = g.w = 3;
  return g;
}

// Tiles of 2x2 are exact for small integers.
TEST(Winograd, SmallTilesAreExactInEveryLayout) {
  for (ConvolutionDirection const direction : directions)
    for (TensorFormat const format : formats)
      for (Geometry const& geometry : {padded(), ragged(), single()})
        expect_right(problem_of(direction, DataType::f32, DataType::f32, format, geometry), "winograd",
                     "tile=2");
}

// Filters of other sizes are divided into parts, of 3x3 taps and fewer; with an odd number of channels,
// vectors of channels of adjacent parts would overlap.
TEST(Winograd, PartsOfFiltersAreAdded) {
  struct Taps {
    Index rows, columns;
  };
  for (Taps const taps : {Taps{2, 3}, Taps{2, 2}, Taps{4, 3}, Taps{5, 5}, Taps{3, 7}})
    for (Index const channels : {5, 8})
      for (ConvolutionDirection const direction : both)
        for (TensorFormat const format : formats) {
          Geometry g = ragged();
          g.c = channels, g.r = taps.rows, g.s = taps.columns;
          expect_right(problem_of(direction, DataType::f32, DataType::f32, format, g), "winograd", "tile=2");
        }
}

TEST(Winograd, TypesAndMixedLayouts) {
  for (DataType const type : {DataType::f16, DataType::bf16, DataType::tf32})
    expect_right(problem_of(ConvolutionDirection::forward, type, DataType::f32, TensorFormat::nhwc, padded()),
                 "winograd", "tile=2");
  auto p =
      problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nchw, padded());
  p.y.layout = image_layout(TensorFormat::nhwc, p.y.extent(0), p.y.extent(1), p.y.extent(2), p.y.extent(3));
  expect_right(p, "winograd", "tile=2");
}

TEST(Winograd, EpiloguesSeeTheResultsIndices) {
  for (ConvolutionDirection const direction : both)
    for (TensorFormat const format : formats) {
      auto p = problem_of(direction, DataType::f32, DataType::f32, format, ragged());
      TensorDescription const result = direction == ConvolutionDirection::forward ? p.y : p.x;
      p.epilogue.expression = epilogue::parse("relu(2 * acc + bias[k] - row[p, n]) + rest[n, k, p, q]",
                                              epilogue::convolution_indices);
      p.epilogue.operands = {describe(DataType::f32, {result.extent(1)}),
                             describe(DataType::f32, {result.extent(2), result.extent(0)}), result};
      expect_right(p, "winograd", "tile=2");
    }
}

TEST(Winograd, SlicesFitIntoTheWorkspace) {
  for (TensorFormat const format : formats) {
    auto const p = problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, format, ragged());
    PlanOptions options;
    options.kernel = "winograd";
    options.policy = "tile=2";
    auto const whole = make_plan(p, emulated_device(), options);
    EXPECT_EQ(std::get<WinogradRecipe>(whole.recipe.own).slice, 3);
    options.max_workspace = whole.workspace_bytes - 1;
    auto const sliced = make_plan(p, emulated_device(), options);
    EXPECT_EQ(std::get<WinogradRecipe>(sliced.recipe.own).slice, 2);
    EXPECT_LE(sliced.workspace_bytes, options.max_workspace);
    expect_right(p, "winograd", "tile=2", options.max_workspace);
  }
}

// The sums of a filter gradient's slices are kept separately, and slices have equal sizes.
TEST(Winograd, SlicesOfAFilterGradientAreAdded) {
  for (TensorFormat const format : formats) {
    auto const p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, format, ragged());
    PlanOptions options;
    options.kernel = "winograd";
    options.policy = "tile=2";
    auto const whole = make_plan(p, emulated_device(), options);
    EXPECT_EQ(std::get<WinogradRecipe>(whole.recipe.own).slice, 3);
    options.max_workspace = whole.workspace_bytes - 1;
    auto const sliced = make_plan(p, emulated_device(), options);
    EXPECT_EQ(std::get<WinogradRecipe>(sliced.recipe.own).slice, 1);
    EXPECT_LE(sliced.workspace_bytes, options.max_workspace);
    expect_right(p, "winograd", "tile=2", options.max_workspace);
  }
}

struct Deviation {
  double of_results = 0;  // root mean square error over the root mean square of the results
  double of_bound = 0;    // largest error over winograd_bound()
};
// `equal`: how many adjacent elements in memory are equal.
Deviation deviation(ConvolutionProblem const& p, int tile, Index equal = 1) {
  PlanOptions options;
  options.kernel = "winograd";
  options.policy = "tile=" + std::to_string(tile);
  auto const plan = make_plan(p, emulated_device(), options);
  bool const forward = p.direction == ConvolutionDirection::forward,
             of_filter = p.direction == ConvolutionDirection::filter;
  unsigned state = 1;
  auto const drawn = [&state, equal](TensorDescription const& description) {
    Tensor tensor(description);
    for (Index i = 0; i < tensor.layout().span(); ++i) {
      if (i % equal != 0) {
        store(description.type, tensor.data(), i, load(description.type, tensor.data(), i - 1));
        continue;
      }
      double sum = -6;  // the sum of twelve uniform numbers is nearly normal
      for (int j = 0; j < 12; ++j) sum += ((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24;
      store(description.type, tensor.data(), i, sum);
    }
    return tensor;
  };
  Tensor const image = drawn(forward ? p.x : p.y), filter = drawn(of_filter ? p.x : p.w);
  auto const arguments = [&](Tensor& result) {
    ConvolutionProblem::Arguments all;
    (forward ? all.x : all.dy) = image.data();
    (of_filter ? all.x : all.w) = filter.data();
    (forward ? all.y : of_filter ? all.dw : all.dx) = result.data();
    return all;
  };
  ConvolutionProblem exact = p;
  TensorDescription& result = forward ? exact.y : of_filter ? exact.w : exact.x;
  Tensor ours(result);
  result.type = DataType::f64;
  Tensor truth(result), workspace(DataType::u8, Shape(static_cast<Index>(plan.workspace_bytes)));
  prepare(plan).run(arguments(ours), workspace.data());
  prepare(make_plan(exact, this_device(Backend::reference))).run(arguments(truth), nullptr);
  Tensor const bound = plan::winograd_bound(plan, arguments(ours));
  double error = 0, all = 0, share = 0;
  for (Index i = 0; i < ours.size(); ++i) {
    double const off = std::fabs(ours.get(i) - truth.get(i));
    error += off * off;
    all += truth.get(i) * truth.get(i);
    share = std::max(share, off / bound.get(i));
  }
  return {std::sqrt(error / all), share};
}

// Equal factors have equal rounding errors, which add up like the number of channels.
TEST(Winograd, TheBoundHoldsForEqualChannels) {
  Geometry g = padded();
  g.n = 1, g.c = 64, g.k = 16, g.h = 13, g.w = 11;
  for (int const tile : {2, 4})
    for (Index const taps : {3, 5}) {
      g.r = g.s = taps;
      auto const p =
          problem_of(ConvolutionDirection::forward, DataType::tf32, DataType::f32, TensorFormat::nhwc, g);
      EXPECT_LT(deviation(p, tile, g.c).of_bound, 1) << "tile " << tile << ", " << taps << " taps";
    }
}

// Parts have five taps if that saves products; the matrices of the others are filled from fewer taps.
TEST(Winograd, PartsOfFiveTapsTakeFewerProducts) {
  auto const recipe_of = [](Index rows, Index columns, char const* policy) {
    Geometry g = ragged();
    g.h = g.w = 12, g.r = rows, g.s = columns;
    auto const p =
        problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nhwc, g);
    PlanOptions options;
    options.kernel = "winograd";
    options.policy = policy;
    return std::get<WinogradRecipe>(make_plan(p, emulated_device(), options).recipe.own);
  };
  EXPECT_EQ(recipe_of(5, 5, "tile=4").taps, 5);  // 64 products instead of 144
  EXPECT_EQ(recipe_of(4, 4, "tile=4").taps, 5);
  EXPECT_EQ(recipe_of(7, 7, "tile=4").taps, 5);  // 256 and 324
  EXPECT_EQ(recipe_of(3, 4, "tile=4").taps, 3);  // 64 and 72
  EXPECT_EQ(recipe_of(6, 6, "tile=4").taps, 3);
  EXPECT_EQ(recipe_of(5, 5, "tile=2").taps, 3);
  for (ConvolutionDirection const direction : both)
    for (TensorFormat const format : formats)
      for (Index const rows : {4, 5, 7}) {
        Geometry g = ragged();
        g.r = rows, g.s = 5, g.h = 11;
        EXPECT_LT(deviation(problem_of(direction, DataType::f32, DataType::f32, format, g), 4).of_bound, 1);
      }
}

TEST(Winograd, TheErrorIsWhatThePlanExpects) {
  Geometry g = padded();
  g.n = 1, g.c = 40, g.k = 24, g.h = 13, g.w = 11;
  for (ConvolutionDirection const direction : both)
    for (int const tile : {2, 4})
      for (DataType const type : {DataType::f32, DataType::tf32, DataType::f16, DataType::bf16}) {
        auto const p = problem_of(direction, type, DataType::f32, TensorFormat::nhwc, g);
        DataType const kept = type == DataType::bf16 && tile == 4 ? DataType::tf32 : type;
        double const expected =
            plan::winograd_error(tile, kept, direction == ConvolutionDirection::forward ? g.c : g.k);
        Deviation const found = deviation(p, tile);
        EXPECT_GT(found.of_results, 0.6 * expected) << name_of(type) << " tile " << tile;
        EXPECT_LT(found.of_results, 1.4 * expected) << name_of(type) << " tile " << tile;
        EXPECT_LT(found.of_bound, 1) << name_of(type) << " tile " << tile;
        EXPECT_GT(found.of_bound, 0.02) << name_of(type) << " tile " << tile;
      }
  Geometry larger = g;
  larger.r = 5, larger.s = 2;  // parts of 3x2 and of 2x2 taps
  for (int const tile : {2, 4}) {
    double const expected = plan::winograd_error(tile, DataType::f32, larger.c, larger.r, larger.s, 3);
    Deviation const found = deviation(
        problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nhwc, larger),
        tile);
    EXPECT_GT(found.of_results, 0.6 * expected) << "5x2 taps, tile " << tile;
    EXPECT_LT(found.of_results, 1.4 * expected) << "5x2 taps, tile " << tile;
    EXPECT_LT(found.of_bound, 1) << "5x2 taps, tile " << tile;
    EXPECT_GT(found.of_bound, 0.02) << "5x2 taps, tile " << tile;
  }
  larger.s = 4;
  double const of_five = plan::winograd_error(4, DataType::f32, larger.c, larger.r, larger.s, 5);
  Deviation const by_five = deviation(
      problem_of(ConvolutionDirection::forward, DataType::f32, DataType::f32, TensorFormat::nhwc, larger), 4);
  EXPECT_GT(by_five.of_results, 0.6 * of_five);
  EXPECT_LT(by_five.of_results, 1.4 * of_five);
  EXPECT_LT(by_five.of_bound, 1);
  EXPECT_GT(by_five.of_bound, 0.02);
  for (int const tile : {2, 4}) {
    double const expected = plan::winograd_filter_error(tile, tile == 2 ? 7 * 6 : 4 * 3);
    Deviation const found = deviation(
        problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, TensorFormat::nhwc, g), tile);
    EXPECT_GT(found.of_results, 0.6 * expected) << "filter gradient, tile " << tile;
    EXPECT_LT(found.of_results, 1.4 * expected) << "filter gradient, tile " << tile;
    EXPECT_LT(found.of_bound, 1) << "filter gradient, tile " << tile;
    EXPECT_GT(found.of_bound, 0.02) << "filter gradient, tile " << tile;
  }
  for (TensorFormat const format : formats)  // the larger tile is chosen in the other layouts
    for (ConvolutionDirection const direction : directions)
      EXPECT_LT(deviation(problem_of(direction, DataType::f32, DataType::f32, format, ragged()), 4).of_bound,
                1);
}

Considered considered(ConvolutionProblem const& p, PlanOptions const& options,
                      Backend backend = Backend::cuda) {
  Device device = emulated_device();
  device.backend = backend;
  return entry_of(make_plan(p, device, options).considered, "winograd");
}

ConvolutionProblem layer(DataType type) {
  Geometry g = padded();
  g.n = 64, g.c = g.k = 256, g.h = g.w = 56;
  return problem_of(ConvolutionDirection::forward, type, type, TensorFormat::nchw, g);
}

TEST(Winograd, ThePlannerTakesItForManyChannelsOfF32) {
  Device device = emulated_device();
  device.backend = Backend::cuda;
  auto const plan = make_plan(layer(DataType::f32), device);
  EXPECT_EQ(plan.kernel, "winograd");
  EXPECT_EQ(std::get<WinogradRecipe>(plan.recipe.own).tile, 4);
}

TEST(Winograd, ThePlannerTakesItForFilterGradientsOfManyChannels) {
  Device device = emulated_device();
  device.backend = Backend::cuda;
  ConvolutionProblem gradient = layer(DataType::f32);
  gradient.direction = ConvolutionDirection::filter;
  EXPECT_EQ(make_plan(gradient, device).kernel, "winograd");
}

TEST(Winograd, ErrorsLimitTheChoice) {
  PlanOptions options;
  EXPECT_NE(considered(layer(DataType::f16), options).refusal.find("exceeds the limit 1e-4"),
            std::string::npos);
  options.max_error = 1e-6;  // errors of 2x2 tiles are below it, those of 4x4 tiles are not
  EXPECT_NE(considered(layer(DataType::f32), options).recipe.find("tiles of 2x2"), std::string::npos);
  options.max_error = 1e-7;
  EXPECT_THROW(considered(layer(DataType::f32), options), Error);  // sums in f32 have larger errors
  options.max_error = 1e-2;
  EXPECT_EQ(considered(layer(DataType::f16), options).refusal, "");
  options.deterministic = true;
  EXPECT_EQ(considered(layer(DataType::f16), options).refusal, "");
}

TEST(Winograd, RefusalsSayWhatIsInTheWay) {
  auto const refusal = [](Geometry const& g, DataType type = DataType::f32,
                          std::size_t workspace = ~std::size_t{0}) {
    PlanOptions options;
    options.max_workspace = workspace;
    return considered(problem_of(ConvolutionDirection::forward, type, type, TensorFormat::nhwc, g), options,
                      Backend::emulator)
        .refusal;
  };
  Geometry strided, grouped, dilated, larger;
  strided.stride[1] = 2, grouped.groups = 2, dilated.dilation[0] = 2, larger.s = 10, larger.w = 12;
  EXPECT_NE(refusal(strided).find("stride 2"), std::string::npos);
  EXPECT_NE(refusal(grouped).find("2 groups"), std::string::npos);
  EXPECT_NE(refusal(dilated).find("dilation 2"), std::string::npos);
  EXPECT_NE(refusal(larger).find("3x10 taps"), std::string::npos);
  EXPECT_NE(refusal({}, DataType::f64).find("f64"), std::string::npos);
  EXPECT_NE(refusal({}, DataType::f32, 1000).find("at most 1000"), std::string::npos);
}

TEST(Winograd, TheTransformsCompileWithoutSpills) {
  if (!jit::nvrtc_available()) GTEST_SKIP() << jit::nvrtc_description();
  Device device = emulated_device();
  device.backend = Backend::cuda;
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc})
    for (char const* policy : {"tile=2", "tile=4"}) {
      Geometry g = padded();
      g.c = g.k = 64, g.h = g.w = 28;
      auto p = problem_of(ConvolutionDirection::data, DataType::f16, DataType::f16, format, g);
      p.epilogue.expression = epilogue::parse("relu(acc + bias[k])", epilogue::convolution_indices);
      p.epilogue.operands = {describe(DataType::f32, {p.x.extent(1)})};
      PlanOptions options;
      options.kernel = "winograd";
      options.policy = policy;
      program::Program const program = plan::program_of(make_plan(p, device, options));
      p.w = describe(p.w.type, image_layout(format, g.k, g.c, 5, 5));
      p.y = describe(p.y.type, image_layout(format, g.n, g.k, 26, 26));
      program::Program const larger = plan::program_of(make_plan(p, device, options));
      for (program::KernelSpec const& kernel : larger.kernels)
        EXPECT_EQ(jit::compile(cuda::kernel_source(kernel, device.gpu)).local_bytes, 0) << kernel.key();
      for (program::KernelSpec const& kernel : program.kernels)
        EXPECT_EQ(jit::compile(cuda::kernel_source(kernel, device.gpu)).local_bytes, 0) << kernel.key();
      p = problem_of(ConvolutionDirection::filter, DataType::f32, DataType::f32, format, g);
      for (program::KernelSpec const& kernel : plan::program_of(make_plan(p, device, options)).kernels)
        EXPECT_EQ(jit::compile(cuda::kernel_source(kernel, device.gpu)).local_bytes, 0) << kernel.key();
    }
}

}  // namespace
}  // namespace cosmati
