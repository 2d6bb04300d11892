// Convolution, its data gradient (which is also the transposed convolution) and its filter gradient.
#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/post_ops.h"
#include "src/backend/cpu/onednn/recipe.h"

namespace cosmati::cpu::onednn {
namespace {

using Arguments = ConvolutionProblem::Arguments;
using Binding = Program::Binding;

// The layout in which the primitive receives the images: unchanged, copied to NCHW or NHWC, or in the channel
// blocks that it prefers.
enum class Images { as_they_lie, nchw, nhwc, blocked };

struct Geometry {
  dnnl::memory::dims stride, dilation, begin, end;
  explicit Geometry(ConvolutionProblem const& p)
      : stride{p.stride[0], p.stride[1]},
        dilation{p.dilation[0] - 1, p.dilation[1] - 1},  // oneDNN counts the zeros between taps
        begin{p.pad_begin[0], p.pad_begin[1]},
        end{p.pad_end[0], p.pad_end[1]} {}
};

// The filter as (K, C / groups, R, S), or with the groups as a separate first dimension.
Descriptor filter_descriptor(ConvolutionProblem const& p) {
  if (p.groups == 1) return descriptor(p.w);
  TensorDescription w = p.w;
  Layout const& given = p.w.layout;
  Index const filters = given.extent(0) / p.groups;
  w.layout.shape = {p.groups, filters, given.extent(1), given.extent(2), given.extent(3)};
  for (int d = 4; d > 0; --d) w.layout.stride[d] = given.stride[d - 1];
  w.layout.stride[0] = filters * given.stride[0];
  return descriptor(w);
}

Descriptor image_descriptor(Images images, Descriptor const& given) {
  switch (images) {
    case Images::nchw: return {given.dims(), given.data_type(), Tag::nchw};
    case Images::nhwc: return {given.dims(), given.data_type(), Tag::nhwc};
    case Images::blocked: return any_layout(given);
    case Images::as_they_lie: break;
  }
  return given;
}

struct Build {
  ConvolutionProblem const& problem;
  Device const& device;
  Recipe<ConvolutionProblem> recipe;
  Images images;
  Geometry geometry;
  Descriptor x, w, y;

  Build(ConvolutionProblem const& p, Device const& on, Images how)
      : problem(p),
        device(on),
        images(how),
        geometry(p),
        x(image_descriptor(how, descriptor(p.x))),
        w(any_layout(filter_descriptor(p))),
        y(image_descriptor(how, descriptor(p.y))) {}

  dnnl::convolution_forward::primitive_desc forward_primitive(dnnl::prop_kind kind, Descriptor const& result,
                                                              Descriptor const& bias,
                                                              dnnl::primitive_attr const& attributes) const {
    auto const algorithm = dnnl::algorithm::convolution_direct;
    auto const& g = geometry;
    auto const description = bias ? dnnl::convolution_forward::desc(kind, algorithm, x, w, bias, result,
                                                                    g.stride, g.dilation, g.begin, g.end)
                                  : dnnl::convolution_forward::desc(kind, algorithm, x, w, result, g.stride,
                                                                    g.dilation, g.begin, g.end);
    return {description, attributes, engine()};
  }

  void require_fast(dnnl::primitive_desc_base const& primitive) const {
    if (is_slow(primitive)) throw Unsupported("oneDNN has only its reference loops for these layouts");
  }

  // For the filter gradient of a strided 1x1 filter, "jit_1x1" first copies the pixels that the filter reads.
  // If NHWC images have fewer channels than a block (8 with AVX2, 16 with AVX-512), version 2.6 copies a full
  // block for each pixel, so the last copy overruns its buffer, past the scratchpad or into the partial sums
  // stored behind it.
  void require_whole_blocks(dnnl::convolution_backward_weights::primitive_desc const& primitive) const {
    constexpr Index block = 16;
    Index const channels = problem.x.extent(1);
    bool const strided = problem.stride[0] != 1 || problem.stride[1] != 1;
    bool const copies = std::string(primitive.impl_info_str()).find("1x1") != std::string::npos;
    Descriptor const source = primitive.src_desc();
    if (strided && copies && channels < block &&
        source == Descriptor(source.dims(), source.data_type(), Tag::nhwc))
      throw Unsupported("x has " + std::to_string(channels) +
                        " channels in NHWC; oneDNN's filter gradient of a 1x1 filter with strides needs " +
                        std::to_string(block) + "; with fewer it writes beyond its scratchpad");
  }

  void forward() {
    bool const integers = is_integer(problem.x.type);
    Kind const sum = integers ? Kind::s32 : Kind::f32;
    bool const is_accumulator = is_plain(problem.epilogue);
    auto post = integers ? std::nullopt : match_post_ops(problem.epilogue, "k", problem.y.extent(1), 4, 1);
    bool const direct_type = kind_of(problem.y.type) == sum ||
                             (problem.y.type == DataType::bf16 && problem.x.type == DataType::bf16);
    bool const finished = direct_type && (is_accumulator || post);
    if (!finished) post.reset();
    TensorDescription target = problem.y;
    if (!finished) target.type = integers ? DataType::s32 : DataType::f32;
    bool const in_place = !finished && target.type == problem.y.type && !reads_images();

    auto attributes = user_scratchpad();
    Descriptor bias;
    if (post) attributes.set_post_ops(post->operations);
    if (post && post->bias >= 0) bias = {{problem.y.extent(1)}, Kind::f32, Tag::a};
    Descriptor const given = descriptor(target);
    auto const primitive = forward_primitive(dnnl::prop_kind::forward_inference,
                                             image_descriptor(images, given), bias, attributes);
    require_fast(primitive);
    auto& program = recipe.program;
    auto const source = program.reordered(argument_x(), primitive.src_desc());
    auto const weights = program.reordered(argument_w(), primitive.weights_desc());
    auto const to =
        finished || in_place
            ? recipe.argument([](Arguments const& run, int) -> void const* { return run.y; }, given)
            : program.temporary(given);
    auto const destination = program.output(to, primitive.dst_desc());
    std::vector<Binding> bindings{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, destination}};
    if (post) bind_post_ops(recipe, *post, bias, bindings);
    program.add(primitive, bindings);
    program.copy_back(destination, to);
    if (finished) return;
    recipe.result = [](Arguments const& run, int) -> void const* { return run.y; };
    add_tail(target, problem.y, in_place ? std::nullopt : std::optional(to), integers);
  }

  void data() {
    TensorDescription target = problem.x;
    target.type = DataType::f32;
    bool const same_type = target.type == problem.x.type;
    bool const is_accumulator = is_plain(problem.epilogue);
    bool const finished = is_accumulator && (same_type || problem.x.type == problem.y.type);
    if (finished) target.type = problem.x.type;
    bool const in_place = finished || (same_type && !reads_images());
    Descriptor const given = descriptor(target);
    x = image_descriptor(images, given);
    auto const& g = geometry;
    dnnl::convolution_backward_data::primitive_desc const primitive(
        {dnnl::algorithm::convolution_direct, x, w, y, g.stride, g.dilation, g.begin, g.end},
        user_scratchpad(), engine(), hint());
    require_fast(primitive);
    auto& program = recipe.program;
    auto const dy = program.reordered(argument_dy(), primitive.diff_dst_desc());
    auto const weights = program.reordered(argument_w(), primitive.weights_desc());
    auto const to =
        in_place ? recipe.argument([](Arguments const& run, int) -> void const* { return run.dx; }, given)
                 : program.temporary(given);
    auto const dx = program.output(to, primitive.diff_src_desc());
    program.add(primitive, {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, dx}});
    program.copy_back(dx, to);
    if (finished) return;
    recipe.result = [](Arguments const& run, int) -> void const* { return run.dx; };
    add_tail(target, problem.x, in_place ? std::nullopt : std::optional(to), false);
  }

  void filter() {
    auto const& g = geometry;
    bool const with_bias = problem.db.present();
    Descriptor const bias = with_bias ? descriptor(problem.db) : Descriptor();
    auto const algorithm = dnnl::algorithm::convolution_direct;
    auto const description = with_bias ? dnnl::convolution_backward_weights::desc(
                                             algorithm, x, w, bias, y, g.stride, g.dilation, g.begin, g.end)
                                       : dnnl::convolution_backward_weights::desc(
                                             algorithm, x, w, y, g.stride, g.dilation, g.begin, g.end);
    dnnl::convolution_backward_weights::primitive_desc const primitive(description, user_scratchpad(),
                                                                       engine(), hint());
    require_fast(primitive);
    require_whole_blocks(primitive);
    auto& program = recipe.program;
    auto const source = program.reordered(argument_x(), primitive.src_desc());
    auto const dy = program.reordered(argument_dy(), primitive.diff_dst_desc());
    auto const to = recipe.argument([](Arguments const& run, int) -> void const* { return run.dw; },
                                    filter_descriptor(problem));
    auto const dw = program.output(to, primitive.diff_weights_desc());
    std::vector<Binding> bindings{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw}};
    if (with_bias)
      bindings.emplace_back(
          DNNL_ARG_DIFF_BIAS,
          recipe.argument([](Arguments const& run, int) -> void const* { return run.db; }, bias));
    program.add(primitive, bindings);
    program.copy_back(dw, to);
  }

 private:
  dnnl::convolution_forward::primitive_desc hint() const {
    return forward_primitive(dnnl::prop_kind::forward_training, y, {}, user_scratchpad());
  }
  Program::Slot argument_x() {
    return recipe.argument([](Arguments const& run, int) { return run.x; }, descriptor(problem.x));
  }
  Program::Slot argument_w() {
    return recipe.argument([](Arguments const& run, int) { return run.w; }, filter_descriptor(problem));
  }
  Program::Slot argument_dy() {
    return recipe.argument([](Arguments const& run, int) { return run.dy; }, descriptor(problem.y));
  }
  // True if the epilogue reads an array that may alias the result.
  bool reads_images() const {
    for (auto const& operand : problem.epilogue.expression.operands())
      if (operand.indices.size() > 1) return true;
    return false;
  }
  void add_tail(TensorDescription const& accumulator, TensorDescription const& result,
                std::optional<Program::Slot> slot, bool in_double) {
    recipe.tail.emplace(Tail{Pointwise(epilogue_pointwise(problem.epilogue, epilogue::convolution_indices,
                                                          accumulator, {}, result, in_double),
                                       device.threads),
                             slot});
  }
};

template <Images images>
Recipe<ConvolutionProblem> build_convolution(ConvolutionProblem const& problem, Device const& device) {
  Build build(problem, device, images);
  switch (problem.direction) {
    case ConvolutionDirection::forward: build.forward(); break;
    case ConvolutionDirection::data: build.data(); break;
    case ConvolutionDirection::filter: build.filter(); break;
    case ConvolutionDirection::bias: throw Unsupported("oneDNN has no separate bias gradient");
  }
  return std::move(build.recipe);
}

std::string violates_convolution_types(ConvolutionProblem const& p, Device const& device) {
  bool const forward = p.direction == ConvolutionDirection::forward;
  DataType const first = forward || p.direction == ConvolutionDirection::filter ? p.x.type : p.y.type;
  DataType const second = p.direction == ConvolutionDirection::filter ? p.y.type : p.w.type;
  std::string const types = std::string("the inputs are ") + name_of(first) + " and " + name_of(second);
  if (first == DataType::f32 && second == DataType::f32) {
  } else if (first == DataType::bf16 && second == DataType::bf16) {
    if (!device.avx512_bf16)
      return types + "; oneDNN's bf16 products need AVX-512 BF16, which this processor lacks";
  } else if (forward && (first == DataType::s8 || first == DataType::u8) && second == DataType::s8) {
    if (!device.avx512_vnni)
      return types +
             "; 8-bit products need AVX-512 VNNI, which this processor lacks: oneDNN would saturate sums";
  } else {
    return types + "; oneDNN convolves f32 with f32, bf16 with bf16, and forward s8 or u8 with s8";
  }
  if (p.direction == ConvolutionDirection::filter) {
    if (p.w.type != DataType::f32 && p.w.type != first)
      return std::string("dw is ") + name_of(p.w.type) + "; it must be f32 or the inputs' type";
    if (p.db.present() && (p.db.type != p.w.type || (p.db.extent(0) > 1 && p.db.layout.stride[0] != 1)))
      return "db is " + to_string(p.db) + "; it must be dense and of dw's type, " + name_of(p.w.type);
  }
  return {};
}

bool is_nhwc(TensorDescription const& t) { return t.layout.permuted(0, 2, 3, 1).is_row_major(); }
bool is_nchw(TensorDescription const& t) { return t.layout.is_row_major(); }

std::string violates_plain_images(ConvolutionProblem const& p, Device const&) {
  if ((is_nhwc(p.x) && is_nhwc(p.y)) || (is_nchw(p.x) && is_nchw(p.y))) return {};
  return "x is " + to_string(p.x) + ", y is " + to_string(p.y) +
         "; both must be dense and NCHW, or dense and NHWC";
}

// Measured with NCHW images, in GFLOP/s of a peak of 230. On NCHW images oneDNN runs im2col and a matrix
// product, which is faster where no im2col is needed (1x1: 222 against 196) and where dx has too few channels
// for a vector (1 channel: 27 against 13). Otherwise copying to NHWC and back pays off: 8 channels 3x3, 89
// against 29; 12 to 20 channels, 100 against 58; the filter gradient of 6 to 16 channels, 178 against 60.
// With oneDNN's channel blocks these three reach 58, 100 and 103.
bool few_channels(ConvolutionProblem const& p) {
  return p.direction == ConvolutionDirection::data && p.groups == 1 && p.x.extent(1) <= 3 &&
         p.x.type == DataType::f32;
}

bool pointwise(ConvolutionProblem const& p) {
  bool result = p.groups == 1;
  for (int i : {0, 1})
    result = result && p.w.extent(2 + i) == 1 && p.stride[i] == 1 && p.pad_begin[i] == 0 && p.pad_end[i] == 0;
  return result;
}

std::string advises_against_plain(ConvolutionProblem const& p, Device const&) {
  if (few_channels(p))
    return is_nchw(p.x) ? ""
                        : "dx has " + std::to_string(p.x.extent(1)) + " channels: NCHW is faster up to 3";
  if (is_nhwc(p.x) && is_nhwc(p.y)) return {};
  return pointwise(p) ? "" : "the images are NCHW: NHWC is faster, copies included, unless the filter is 1x1";
}

std::string advises_against_nchw(ConvolutionProblem const& p, Device const&) {
  return few_channels(p) ? "" : "NHWC is faster, unless the direction is data and dx has up to 3 channels";
}

}  // namespace

std::vector<Candidate<ConvolutionProblem>> convolution_candidates() {
  using Problem = ConvolutionProblem;
  return {recipe_candidate<Problem, build_convolution<Images::as_they_lie>>(
              "onednn_plain",
              {{violates_convolution_types}, {violates_plain_images}, {advises_against_plain, true}}),
          recipe_candidate<Problem, build_convolution<Images::nchw>>(
              "onednn_nchw", {{violates_convolution_types}, {advises_against_nchw, true}}),
          recipe_candidate<Problem, build_convolution<Images::nhwc>>("onednn_nhwc",
                                                                     {{violates_convolution_types}}),
          recipe_candidate<Problem, build_convolution<Images::blocked>>("onednn_blocked",
                                                                        {{violates_convolution_types}})};
}

}  // namespace cosmati::cpu::onednn
