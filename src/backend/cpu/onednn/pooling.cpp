// Average pooling, forward and backward.
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = PoolingProblem::Arguments;

std::string violates_pooling(PoolingProblem const& p, Device const& device) {
  if (p.x.type != p.y.type || (p.x.type != DataType::f32 && p.x.type != DataType::bf16))
    return std::string("x is ") + name_of(p.x.type) + ", y is " + name_of(p.y.type) +
           "; both must be f32 or bf16";
  if (p.x.type == DataType::bf16 && !device.avx512) return "bf16 needs AVX-512, which this processor lacks";
  if (p.mode == PoolingMode::max)
    return "the mode is max; it must be average, since oneDNN's maximum drops NaN and numbers its indices "
           "differently";
  if (p.x.type == DataType::bf16 && p.direction == Direction::backward)
    return "dx is bf16, in which oneDNN would round each partial sum; it must be f32";
  return {};
}

// With SSE4.1, oneDNN adds operands directly from memory, and crashes unless they are aligned to 16 bytes.
std::string violates_alignment(PoolingProblem const& p, Device const& device) {
  if (!lacks_avx(device)) return {};
  std::string violation;
  PoolingProblem::visit_tensors(p, [&](char const* name, Role, TensorDescription const& t, auto) {
    if (violation.empty() && t.alignment < 16)
      violation = std::string(name) + " declares an alignment of " + std::to_string(t.alignment) +
                  " bytes; without AVX oneDNN needs 16";
  });
  return violation;
}

Recipe<PoolingProblem> build(PoolingProblem const& p, Device const&) {
  Recipe<PoolingProblem> recipe;
  auto const algorithm = p.mode == PoolingMode::average ? dnnl::algorithm::pooling_avg_exclude_padding
                                                        : dnnl::algorithm::pooling_avg_include_padding;
  dnnl::memory::dims const stride{p.stride[0], p.stride[1]}, window{p.window[0], p.window[1]},
      gaps{p.dilation[0] - 1, p.dilation[1] - 1}, begin{p.pad_begin[0], p.pad_begin[1]};
  // The end padding that gives the requested extent; oneDNN requires that both agree.
  dnnl::memory::dims end(2);
  for (int i = 0; i < 2; ++i) {
    auto const d = static_cast<std::size_t>(i);
    Index const reach = (p.y.extent(2 + i) - 1) * p.stride[i] + (p.window[i] - 1) * p.dilation[i] + 1;
    end[d] = reach - p.x.extent(2 + i) - p.pad_begin[i];
    if (p.mode == PoolingMode::average_with_padding && end[d] > p.pad_end[i])
      throw Unsupported(
          "the last window ends " + std::to_string(end[d] - p.pad_end[i]) +
          " elements beyond the padding, which oneDNN would count; it must end within the padding");
  }
  Descriptor const x = descriptor(p.x), y = descriptor(p.y);
  auto const forward = [&](dnnl::prop_kind kind) {
    return dnnl::pooling_v2_forward::primitive_desc({kind, algorithm, x, y, stride, window, gaps, begin, end},
                                                    user_scratchpad(), engine());
  };
  auto& program = recipe.program;
  if (p.direction == Direction::forward) {
    auto const primitive = forward(dnnl::prop_kind::forward_inference);
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for these layouts");
    program.add(
        primitive,
        {{DNNL_ARG_SRC, recipe.argument([](Arguments const& run, int) { return run.x; }, x)},
         {DNNL_ARG_DST, recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, y)}});
    return recipe;
  }
  dnnl::pooling_v2_backward::primitive_desc const primitive(
      {algorithm, x, y, stride, window, gaps, begin, end}, user_scratchpad(), engine(),
      forward(dnnl::prop_kind::forward_training));
  if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for these layouts");
  program.add(primitive,
              {{DNNL_ARG_DIFF_DST, recipe.argument([](Arguments const& run, int) { return run.dy; }, y)},
               {DNNL_ARG_DIFF_SRC,
                recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, x)}});
  return recipe;
}

}  // namespace

Candidate<PoolingProblem> pooling_candidate() {
  return recipe_candidate<PoolingProblem, build>("onednn", {{violates_pooling}, {violates_alignment}});
}

}  // namespace cosmati::cpu::onednn
