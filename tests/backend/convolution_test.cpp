// Convolution and its gradients on the cpu backend against the reference.
#include "cosmati/ops/convolution.h"

#include <barrier>
#include <thread>

#include "cosmati/epilogue/parse.h"
#include "tests/support/compare.h"
#include "tests/support/convolution.h"

namespace cosmati {
namespace {

using test::Bound;
using test::Choice;
using test::Trial;
using test::Values;

Device cpu(int threads = 2) { return this_device(Backend::cpu, threads); }

ConvolutionProblem random_problem(Choice& choice, ConvolutionDirection direction, DataType type) {
  ConvolutionProblem p;
  p.direction = direction;
  p.groups = choice.of<Index>({1, 1, 1, 2, 3});
  Index const n = choice.of<Index>({1, 2, 3}), c = p.groups * choice.of<Index>({1, 2, 3, 8, 16, 17}),
              k = p.groups * choice.of<Index>({1, 2, 5, 16, 17});
  Index in[2], out[2], filter[2];
  for (int i = 0; i < 2; ++i) {
    filter[i] = choice.of<Index>({1, 1, 2, 3, 5});
    p.stride[i] = choice.of<Index>({1, 1, 2, 3});
    p.dilation[i] = choice.of<Index>({1, 1, 2});
    p.pad_begin[i] = choice.between(0, filter[i] - 1);
    p.pad_end[i] = choice.between(0, filter[i] - 1);
    in[i] = choice.between(filter[i] * p.dilation[i], 14);
    out[i] = convolution_extent(in[i], filter[i], p.stride[i], p.pad_begin[i], p.pad_end[i], p.dilation[i]);
  }
  auto const format = [&] { return choice.of({TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn}); };
  auto const images = format();
  bool const any = choice.between(0, 5) == 0;
  auto const layout = [&](Shape const& s) {
    return any ? choice.layout(s) : image_layout(images, s[0], s[1], s[2], s[3]);
  };
  p.x = describe(type, layout({n, c, in[0], in[1]}));
  p.y = describe(type, layout({n, k, out[0], out[1]}));
  p.w = describe(type, image_layout(format(), k, c / p.groups, filter[0], filter[1]));
  if (direction == ConvolutionDirection::bias ||
      (direction == ConvolutionDirection::filter && choice.heads()))
    p.db = describe(type, Shape{k});
  return p;
}

Index terms(ConvolutionProblem const& p) {
  Index const taps = p.w.extent(2) * p.w.extent(3);
  switch (p.direction) {
    case ConvolutionDirection::forward: return p.w.extent(1) * taps;
    case ConvolutionDirection::data: return p.w.extent(0) / p.groups * taps;
    default: return p.y.layout.size() / p.y.extent(1);
  }
}

Bound sums(ConvolutionProblem const& p) {
  return {.terms = 4 * (std::sqrt(static_cast<double>(terms(p))) + 4), .absolute = 2e-6};
}

char const* const epilogues[] = {
    "acc",
    "acc + bias[k]",
    "relu(acc + bias[k])",
    "tanh(acc * scale[k] + bias[k])",
    "1.7159 * tanh(0.6666 * (acc + bias[k]))",
    "alpha * acc + residual[n, k, p, q]",
    "let t = acc + bias[k]; store(pre, t); leaky_relu(t, 0.2)",
};

using enum ConvolutionDirection;

TEST(Convolution, F32OfAnyGeometryLayoutAndEpilogue) {
  for (ConvolutionDirection direction : {forward, data, filter, bias})
    for (unsigned seed = 0; seed < 80; ++seed) {
      Choice choice(seed);
      auto problem = random_problem(choice, direction, DataType::f32);
      if (direction == forward || direction == data)
        test::set_epilogue(problem, epilogues[seed % std::size(epilogues)]);
      SCOPED_TRACE("seed " + std::to_string(seed) + " direction " +
                   std::to_string(static_cast<int>(direction)));
      Trial(problem, seed).expect_fast_and_close(cpu(), sums(problem));
    }
}

TEST(Convolution, EveryKernelThatAcceptsAProblemComputesIt) {
  for (ConvolutionDirection direction : {forward, data, filter})
    for (unsigned seed = 100; seed < 130; ++seed) {
      Choice choice(seed);
      auto problem = random_problem(choice, direction, DataType::f32);
      if (direction != filter) test::set_epilogue(problem, epilogues[seed % std::size(epilogues)]);
      auto const plan = make_plan(problem, cpu());
      for (auto const& considered : plan.considered)
        if (considered.refusal.empty()) {
          SCOPED_TRACE(considered.kernel + " seed " + std::to_string(seed));
          Trial(problem, seed).expect_close(cpu(), sums(problem), considered.kernel);
        }
    }
}

TEST(Convolution, OneTapIsAProduct) {
  int planned = 0, named = 0;
  for (DataType type : {DataType::f32, DataType::bf16, DataType::f64})
    for (TensorFormat format : {TensorFormat::nhwc, TensorFormat::nchw, TensorFormat::chwn})
      for (Index stride : {1, 2, 3})
        for (unsigned seed = 0; seed < std::size(epilogues); ++seed) {
          bool const large = type == DataType::f32 && seed == 0;  // the planner uses a matrix product for it
          Index const channels = large ? 512 : 17, filters = large ? 256 : 9, size = 7;
          ConvolutionProblem p;
          Index const out = convolution_extent(size, 1, stride, 0, 0, 1);
          p.x = describe(type, image_layout(format, 2, channels, size, size));
          p.w = describe(type, Shape{filters, channels, 1, 1});
          p.y = describe(type, image_layout(format, 2, filters, out, out));
          p.stride[0] = p.stride[1] = stride;
          test::set_epilogue(p, epilogues[seed]);
          SCOPED_TRACE(std::string(name_of(type)) + " stride " + std::to_string(stride) + " seed " +
                       std::to_string(seed));
          planned += make_plan(p, cpu()).kernel == "gemm";
          Trial(p, seed).expect_close(cpu(), sums(p), "gemm");
          ++named;
        }
  EXPECT_EQ(planned, 3);  // NHWC, with either stride
  EXPECT_EQ(named, 3 * 3 * 3 * 7);
}

TEST(Convolution, SmallIntegersAreExactInEveryType) {
  using enum DataType;
  for (DataType type : {f64, f32, bf16, f16, tf32})
    for (ConvolutionDirection direction : {forward, data, filter, bias})
      for (unsigned seed = 0; seed < 14; ++seed) {
        Choice choice(seed);
        auto problem = random_problem(choice, direction, type);
        SCOPED_TRACE(std::string(name_of(type)) + " seed " + std::to_string(seed) + " direction " +
                     std::to_string(static_cast<int>(direction)));
        Trial(problem, seed, Values::small_integers).expect_fast_and_close(cpu(), {.exact = true});
      }
}

TEST(Convolution, BytesAreExact) {
  using enum DataType;
  for (DataType x : {s8, u8})
    for (DataType w : {s8, u8})
      for (unsigned seed = 0; seed < 12; ++seed) {
        Choice choice(seed);
        auto problem = random_problem(choice, forward, s32);
        problem.x.type = x;
        problem.w.type = w;
        if (choice.heads()) problem.y.type = f32;
        Trial(problem, seed, Values::small_integers).expect_fast_and_close(cpu(), {.exact = true});
      }
}

// Several threads prepare at the same time, like devices that train together. With oneDNN alone, one bf16
// kernel in fifty was wrong.
TEST(Convolution, ThreadsThatPrepareAtOnceGetKernelsThatAreRight) {
  constexpr int threads = 3;
  for (Index size = 4; size <= 34; size += 2)
    for (Index channels : {3, 5, 17}) {
      ConvolutionProblem problem;
      problem.x = describe(DataType::bf16, image_layout(TensorFormat::nhwc, 2, channels, size, size));
      problem.w = describe(DataType::bf16, image_layout(TensorFormat::nhwc, 6, channels, 5, 5));
      problem.y = describe(DataType::bf16, image_layout(TensorFormat::nhwc, 2, 6, size / 2, size / 2));
      for (int d : {0, 1}) {
        problem.stride[d] = 2;
        problem.pad_begin[d] = 1;
        problem.pad_end[d] = 2;
      }
      std::barrier together(threads);
      std::vector<std::thread> team;
      for (int i = 0; i < threads; ++i)
        team.emplace_back([&] {
          Trial trial(problem, 1, Values::small_integers);
          together.arrive_and_wait();
          trial.expect_close(cpu(1), {.exact = true});
        });
      for (std::thread& thread : team) thread.join();
    }
}

TEST(Convolution, F64MeetsItsBound) {
  for (ConvolutionDirection direction : {forward, data, filter, bias})
    for (unsigned seed = 0; seed < 20; ++seed) {
      Choice choice(seed);
      auto problem = random_problem(choice, direction, DataType::f64);
      if (direction == forward || direction == data)
        test::set_epilogue(problem, epilogues[seed % std::size(epilogues)]);
      Bound bound = sums(problem);
      bound.absolute = 1e-14;
      Trial(problem, seed).expect_fast_and_close(cpu(), bound);
    }
}

TEST(Convolution, LayersOfNetworks) {
  struct Layer {
    Index n, c, size, k, filter, stride, pad;
  };
  for (Layer layer : {Layer{4, 1, 32, 6, 5, 1, 0},
                      {4, 6, 14, 16, 5, 1, 0},
                      {4, 16, 5, 120, 5, 1, 0},
                      {2, 64, 7, 64, 3, 1, 1},
                      {1, 3, 28, 64, 7, 2, 3},
                      {2, 64, 7, 128, 1, 1, 0}})
    for (auto format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
      for (ConvolutionDirection direction : {forward, data, filter}) {
        ConvolutionProblem p;
        p.direction = direction;
        for (int i : {0, 1}) p.stride[i] = layer.stride, p.pad_begin[i] = p.pad_end[i] = layer.pad;
        Index const out = convolution_extent(layer.size, layer.filter, layer.stride, layer.pad, layer.pad, 1);
        p.x = describe(DataType::f32, image_layout(format, layer.n, layer.c, layer.size, layer.size));
        p.y = describe(DataType::f32, image_layout(format, layer.n, layer.k, out, out));
        p.w = describe(DataType::f32, Shape{layer.k, layer.c, layer.filter, layer.filter});
        Trial(p, 5).expect_fast_and_close(cpu(), sums(p));
      }
}

}  // namespace
}  // namespace cosmati
