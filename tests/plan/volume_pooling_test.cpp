// Pooling of volumes on the cpu and the emulator against the reference, and what rejects it.
#include "src/plan/primitive/volume_pooling.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"

namespace cosmati {
namespace {

Device emulator() {
  Device device = this_device(Backend::emulator);
  device.gpu = describe_gpu("h200");
  return device;
}

PoolingProblem problem_of(PoolingMode mode, Direction direction, DataType type, int format, int geometry) {
  PoolingProblem p;
  p.mode = mode;
  p.direction = direction;
  Index const in[3] = {7, 8, 9};
  if (geometry == 1) {
    p.window[0] = p.window[1] = 3, p.stride[1] = 1, p.pad_begin[0] = 1, p.pad_end[1] = 1;
    p.depth = {3, 2, 1, 1, 1};
  } else if (geometry == 2) {
    p.depth = {2, 1, 0, 1, 2};
    p.dilation[1] = 2;
  } else {
    p.depth = {2, 2, 0, 0, 1};
  }
  Index const out[3] = {
      pooling_extent(in[0], p.depth.window, p.depth.stride, p.depth.pad_begin, p.depth.pad_end,
                     p.depth.dilation, true),
      pooling_extent(in[1], p.window[0], p.stride[0], p.pad_begin[0], p.pad_end[0], p.dilation[0], false),
      pooling_extent(in[2], p.window[1], p.stride[1], p.pad_begin[1], p.pad_end[1], p.dilation[1], true)};
  auto const layout = [&](Index const(&e)[3]) {
    return format == 0   ? row_major({2, 3, e[0], e[1], e[2]})
           : format == 1 ? row_major({2, e[0], e[1], e[2], 3}).permuted(0, 4, 1, 2, 3)
                         : row_major({3, e[0], e[1], e[2], 2}).permuted(4, 0, 1, 2, 3);
  };
  p.x = describe(type, layout(in));
  p.y = describe(type, layout(out));
  return p;
}

TEST(VolumePooling, EveryModeDirectionLayoutAndType) {
  for (Device const& device : {emulator(), this_device(Backend::cpu, 2)})
    for (PoolingMode const mode : {PoolingMode::max, PoolingMode::average, PoolingMode::average_with_padding})
      for (Direction const direction : {Direction::forward, Direction::backward})
        for (DataType const type : {DataType::f32, DataType::f16, DataType::f64})
          for (int format = 0; format < 3; ++format)
            for (int geometry = 0; geometry < 3; ++geometry) {
              test::Trial trial(problem_of(mode, direction, type, format, geometry), 1);
              bool const exact = mode == PoolingMode::max && direction == Direction::forward;
              EXPECT_EQ(trial.expect_close(
                            device,
                            {.terms = 30, .absolute = type == DataType::f64 ? 1e-14 : 2e-6, .exact = exact}),
                        "planes_then_depth");
            }
}

TEST(VolumePooling, IndicesAreTheReferences) {
  PoolingProblem p = problem_of(PoolingMode::max, Direction::forward, DataType::f32, 0, 0);
  p.indices = describe(DataType::s32, p.y.shape());
  EXPECT_EQ(make_plan(p, this_device(Backend::cpu)).kernel, "reference");
  try {
    (void)make_plan(p, emulator());
    FAIL() << "a GPU has no indices of volumes";
  } catch (Error const& error) {
    EXPECT_NE(std::string(error.what()).find("has no indices of volumes; only the reference has"),
              std::string::npos)
        << error.what();
  }
}

// Neither depths and channels or images, nor rows and columns lie together: through dense copies.
TEST(VolumePooling, AnyStrides) {
  for (Device const& device : {emulator(), this_device(Backend::cpu, 2)})
    for (PoolingMode const mode : {PoolingMode::max, PoolingMode::average})
      for (Direction const direction : {Direction::forward, Direction::backward}) {
        PoolingProblem p = problem_of(mode, direction, DataType::f32, 0, 1);
        for (TensorDescription* tensor : {&p.x, &p.y}) {
          Shape wider = tensor->shape();
          for (int d = 1; d < 5; ++d) wider[d] += d;
          for (int d = 0; d < 5; ++d) tensor->layout.stride[d] = row_major(wider).stride[d];
        }
        EXPECT_EQ(test::Trial(p, 1).expect_close(device, {.terms = 30, .absolute = 2e-6}),
                  "planes_then_depth");
      }
}

}  // namespace
}  // namespace cosmati
