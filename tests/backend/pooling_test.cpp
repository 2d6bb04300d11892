// Pooling on the cpu backend against the reference.
#include "cosmati/ops/pooling.h"

#include "tests/support/compare.h"

namespace cosmati {
namespace {

using test::Choice;
using test::Trial;
using test::Values;

Device cpu(int threads = 2) { return this_device(Backend::cpu, threads); }

PoolingProblem random_problem(Choice& choice, PoolingMode mode, DataType type) {
  PoolingProblem p;
  p.mode = mode;
  Index in[2], out[2];
  for (int i = 0; i < 2; ++i) {
    p.window[i] = choice.of<Index>({1, 2, 2, 3, 5});
    p.stride[i] = choice.of<Index>({1, 2, 3});
    p.dilation[i] = choice.of<Index>({1, 1, 1, 2});
    p.pad_begin[i] = choice.between(0, p.window[i] / 2);
    p.pad_end[i] = choice.between(0, p.window[i] / 2);
    in[i] = choice.between((p.window[i] - 1) * p.dilation[i] + 1, 30);
    out[i] = pooling_extent(in[i], p.window[i], p.stride[i], p.pad_begin[i], p.pad_end[i], p.dilation[i],
                            choice.between(0, 3) == 0);
  }
  Index const n = choice.of<Index>({1, 2, 3, 16}), c = choice.of<Index>({1, 2, 3, 16, 17});
  auto const format = choice.of({TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn});
  bool const any = choice.between(0, 4) == 0;
  auto const layout = [&](Index h, Index w) {
    return any ? choice.layout({n, c, h, w}) : image_layout(format, n, c, h, w);
  };
  p.x = describe(type, layout(in[0], in[1]));
  p.y = describe(type, layout(out[0], out[1]));
  return p;
}

TEST(Pooling, EveryModeDirectionLayoutAndType) {
  using enum DataType;
  for (DataType type : {f32, f32, f32, f64, bf16, f16, e4m3, s8, u8, s32})
    for (PoolingMode mode : {PoolingMode::max, PoolingMode::average, PoolingMode::average_with_padding})
      for (Direction direction : {Direction::forward, Direction::backward})
        for (unsigned seed = 0; seed < 12; ++seed) {
          Choice choice(seed);
          auto problem = random_problem(choice, mode, type);
          problem.direction = direction;
          if (mode == PoolingMode::max && choice.between(0, 2) == 0)
            problem.indices = describe(choice.of({s32, u8}), choice.layout(problem.y.shape()));
          if (direction == Direction::backward && problem.indices.present()) continue;  // tested below
          SCOPED_TRACE(std::string(name_of(type)) + " mode " + std::to_string(static_cast<int>(mode)) +
                       " direction " + std::to_string(static_cast<int>(direction)) + " seed " +
                       std::to_string(seed));
          Trial(problem, seed)
              .expect_fast_and_close(cpu(),
                                     {.terms = 12,
                                      .absolute = type == f64 ? 1e-14 : 2e-6,
                                      .exact = mode == PoolingMode::max && direction == Direction::forward});
        }
}

TEST(Pooling, IndicesOfTheForwardPassLeadTheGradientBack) {
  for (DataType type : {DataType::s32, DataType::u8})
    for (unsigned seed = 0; seed < 30; ++seed) {
      Choice choice(seed);
      auto forward = random_problem(choice, PoolingMode::max, DataType::f32);
      forward.indices = describe(type, choice.layout(forward.y.shape()));
      Trial first(forward, seed);
      auto const outputs = first.run(prepare(make_plan(forward, cpu())));
      auto backward = forward;
      backward.direction = Direction::backward;
      Trial second(backward, seed);
      for (Index i = 0; i < backward.indices.layout.size(); ++i)
        second.input("indices").set(i, outputs.at("indices")->get(i));
      SCOPED_TRACE("seed " + std::to_string(seed));
      second.expect_fast_and_close(cpu(), {.terms = 30});
    }
}

TEST(Pooling, NotANumberWins) {
  for (auto format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn}) {
    PoolingProblem p;
    p.x = describe(DataType::f32, image_layout(format, 2, 16, 12, 12));
    p.y = describe(DataType::f32, image_layout(format, 2, 16, 6, 6));
    for (PoolingMode mode : {PoolingMode::max, PoolingMode::average}) {
      p.mode = mode;
      Trial trial(p, 3);
      for (Index i : {0, 13, 77, 300}) trial.input("x").set(i, std::nan(""));
      trial.expect_fast_and_close(cpu(), {});
    }
  }
}

}  // namespace
}  // namespace cosmati
