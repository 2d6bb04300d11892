// Batch normalization: inference, training and backward.
#include <fmt/format.h>

#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = BatchNormProblem::Arguments;

// Describes (N, C, spatial...) as (N, C, 1, W) if the pixels have a common stride. oneDNN has fast loops for
// two, four and five dimensions, but for five not with channels innermost. It recognizes a layout by its
// strides, including those of extents of 1, which are arbitrary in our descriptions.
TensorDescription as_image(TensorDescription t) {
  Layout const& l = t.layout;
  Index const images = l.extent(0), channels = l.extent(1);
  if (l.rank() < 3) {
    Index const channel = channels > 1 ? l.stride[1] : 1;
    t.layout.stride[1] = channel;
    if (images == 1) t.layout.stride[0] = channel * channels;
    return t;
  }
  Index width = 1, step = 1;
  for (int d = l.rank() - 1; d >= 2; --d) {
    if (l.extent(d) == 1) continue;
    if (width == 1)
      step = l.stride[d];
    else if (l.stride[d] != step * width)
      return t;
    width *= l.extent(d);
  }
  Index const channel = channels > 1 ? l.stride[1] : step == 1 ? width : 1;
  Index const image = images > 1 ? l.stride[0] : std::max(step * width, channel * channels);
  t.layout = {{images, channels, 1, width}, {image, channel, step * width, step}};
  return t;
}

std::string violates_batch_norm(BatchNormProblem const& p, Device const& device) {
  if (p.has_activation())
    return fmt::format("the slope is {}; our plans for oneDNN support only 1, no activation", p.slope);
  if (p.statistics.type != DataType::f32 ||
      (p.statistics.extent(0) > 1 && p.statistics.layout.stride[0] != 1))
    return "the statistics are " + to_string(p.statistics) + "; they must be dense f32";
  for (TensorDescription const* t : {&p.x, &p.y, &p.dx}) {
    if (!t->present()) continue;
    if (t->type != p.x.type || (t->type != DataType::f32 && t->type != DataType::bf16))
      return std::string("x is ") + name_of(p.x.type) + ", another tensor " + name_of(t->type) +
             "; all must be f32, or all bf16";
    if (!(as_image(*t).layout == as_image(p.x).layout))
      return "x is " + to_string(p.x) + ", another tensor " + to_string(*t) +
             "; the layouts must be the same";
  }
  if (p.x.type == DataType::bf16 && !device.avx512) return "bf16 needs AVX-512, which this processor lacks";
  return {};
}

Recipe<BatchNormProblem> build(BatchNormProblem const& p, Device const&) {
  using Flags = dnnl::normalization_flags;
  Recipe<BatchNormProblem> recipe;
  auto& program = recipe.program;
  Descriptor const x = descriptor(as_image(p.x)), statistics = descriptor(p.statistics);
  float const epsilon = static_cast<float>(p.epsilon);
  auto const scale_and_shift = Flags::use_scale | Flags::use_shift;
  auto const forward = [&](dnnl::prop_kind kind, Flags flags) {
    return dnnl::batch_normalization_forward::primitive_desc({kind, x, epsilon, flags}, user_scratchpad(),
                                                             engine());
  };
  auto const source = recipe.argument([](Arguments const& run, int) { return run.x; }, x);
  auto const scale = recipe.argument([](Arguments const& run, int) { return run.scale; }, statistics);
  if (p.mode == BatchNormMode::backward) {
    dnnl::batch_normalization_backward::primitive_desc const primitive(
        {dnnl::prop_kind::backward, x, x, epsilon, scale_and_shift}, user_scratchpad(), engine(),
        forward(dnnl::prop_kind::forward_training, scale_and_shift));
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for these layouts");
    program.add(
        primitive,
        {{DNNL_ARG_SRC, source},
         {DNNL_ARG_SCALE, scale},
         {DNNL_ARG_SHIFT, scale},  // required by the interface, not read
         {DNNL_ARG_DIFF_DST, recipe.argument([](Arguments const& run, int) { return run.dy; }, x)},
         {DNNL_ARG_MEAN, recipe.argument([](Arguments const& run, int) { return run.mean; }, statistics)},
         {DNNL_ARG_VARIANCE,
          recipe.argument([](Arguments const& run, int) { return run.variance; }, statistics)},
         {DNNL_ARG_DIFF_SRC,
          recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, x)},
         {DNNL_ARG_DIFF_SCALE,
          recipe.argument([](Arguments const& run, int) -> void const* { return run.dscale; }, statistics)},
         {DNNL_ARG_DIFF_SHIFT,
          recipe.argument([](Arguments const& run, int) -> void const* { return run.dbias; }, statistics)}});
    return recipe;
  }
  bool const training = p.mode == BatchNormMode::training;
  auto const primitive =
      training ? forward(dnnl::prop_kind::forward_training, scale_and_shift)
               : forward(dnnl::prop_kind::forward_inference, scale_and_shift | Flags::use_global_stats);
  if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for these layouts");
  program.add(
      primitive,
      {{DNNL_ARG_SRC, source},
       {DNNL_ARG_SCALE, scale},
       {DNNL_ARG_SHIFT, recipe.argument([](Arguments const& run, int) { return run.bias; }, statistics)},
       {DNNL_ARG_MEAN,
        training ? recipe.argument([](Arguments const& run, int) -> void const* { return run.saved_mean; },
                                   statistics)
                 : recipe.argument([](Arguments const& run, int) { return run.mean; }, statistics)},
       {DNNL_ARG_VARIANCE,
        training
            ? recipe.argument([](Arguments const& run, int) -> void const* { return run.saved_variance; },
                              statistics)
            : recipe.argument([](Arguments const& run, int) { return run.variance; }, statistics)},
       {DNNL_ARG_DST, recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, x)}});
  return recipe;
}

}  // namespace

Candidate<BatchNormProblem> batch_norm_candidate() {
  return recipe_candidate<BatchNormProblem, build>("onednn", {{violates_batch_norm}});
}

}  // namespace cosmati::cpu::onednn
