// A transposed convolution as a data gradient, as two forward convolutions, or as a convolution over an input
// with inserted zeros.
#include "nets/dcgan/layer.h"

#include <numeric>

#include "cosmati/epilogue/parse.h"
#include "src/ops/names.h"

namespace cosmati::dcgan {
namespace {

constexpr char const* names[] = {"auto", "gradient", "merged", "naive", "zeros"};

// The filter element that tap (t, q) of output channel n reads: row, column and output channel of the stored
// filter.
struct Source {
  Index r, s, k;
};

Source source_of(Taps taps, Index outputs, Index n, Index t, Index q) {
  switch (taps) {
    case Taps::turned: return {filter_size - 1 - t, filter_size - 1 - q, n};
    case Taps::even_rows: return {3 - 2 * t, n / outputs + 3 - 2 * q, n % outputs};
    case Taps::odd_rows: return {4 - 2 * t, n / outputs + 3 - 2 * q, n % outputs};
    case Taps::all: break;
  }
  return {t, q, n};
}

TensorDescription output_description(DataType type, Index batch, LayerExtents const& layer) {
  return describe(type,
                  image_layout(TensorFormat::nhwc, batch, layer.outputs, 2 * layer.size, 2 * layer.size));
}

// The description with the alignment that remains `bytes` past an aligned address.
TensorDescription beginning_at(Index bytes, TensorDescription description) {
  if (bytes > 0)
    description.alignment = static_cast<int>(std::gcd(bytes, static_cast<Index>(description.alignment)));
  return description;
}

Epilogue with_bias(std::string const& text, Index outputs) {
  return {
      epilogue::parse(text, epilogue::convolution_indices), {describe(DataType::f32, Shape(outputs))}, {}};
}

LayerPart gradient(LayerExtents const& layer, Index batch, DataType in, DataType out,
                   std::string const& epilogue) {
  LayerPart part;
  ConvolutionProblem& problem = part.problem;
  problem.direction = ConvolutionDirection::data;
  problem.y = input_description(in, batch, layer);
  // (c, k, r, s), stored as (r, s, k, c)
  problem.w =
      describe(in, row_major({filter_size, filter_size, layer.outputs, layer.inputs}).permuted(3, 2, 0, 1));
  problem.x = output_description(out, batch, layer);
  for (int d : {0, 1}) {
    problem.stride[d] = 2;
    problem.pad_begin[d] = 1;
    problem.pad_end[d] = 2;
  }
  problem.epilogue = with_bias(epilogue, layer.outputs);
  return part;
}

// Computes rows 2u + parity of the output from the input's rows u - 1 + t and the filter's rows parity + 3 -
// 2t; columns likewise, with both column parities as additional output channels.
LayerPart rows_of_parity(LayerExtents const& layer, int parity, Index batch, DataType in, DataType out,
                         std::string const& epilogue) {
  LayerPart part;
  part.taps = parity == 0 ? Taps::even_rows : Taps::odd_rows;
  Index const outputs = layer.outputs, size = layer.size;
  ConvolutionProblem& problem = part.problem;
  problem.direction = ConvolutionDirection::forward;
  problem.x = input_description(in, batch, layer);
  problem.w = describe(in, image_layout(TensorFormat::nhwc, 2 * outputs, layer.inputs, 2 + parity, 3));
  Index const row = 2 * size * outputs;  // elements per output row
  Layout layout = image_layout(TensorFormat::nhwc, batch, 2 * outputs, size, size);
  layout.stride[0] = 2 * size * row;
  layout.stride[2] = 2 * row;
  part.out_offset = parity * row * size_of(out);
  problem.y = beginning_at(part.out_offset, describe(out, layout));
  problem.pad_begin[0] = problem.pad_begin[1] = problem.pad_end[1] = 1;
  problem.pad_end[0] = parity;
  problem.epilogue = with_bias(epilogue, 2 * outputs);
  return part;
}

LayerForm over_zeros(LayerExtents const& layer, Index batch, DataType in, DataType out,
                     std::string const& epilogue) {
  LayerForm form;
  Index const inputs = layer.inputs, outputs = layer.outputs, size = layer.size;
  constexpr Index before = 3,
                  around = 4;  // three rows of zeros before the image and two after it, one between its rows
  Index const spread_size = 2 * size + around;
  LayerPart part;
  part.taps = Taps::turned;
  part.problem.direction = ConvolutionDirection::forward;
  part.problem.x = describe(in, image_layout(TensorFormat::nhwc, batch, inputs, spread_size, spread_size));
  part.problem.w = describe(in, image_layout(TensorFormat::nhwc, outputs, inputs, filter_size, filter_size));
  part.problem.y = output_description(out, batch, layer);
  part.problem.epilogue = with_bias(epilogue, outputs);
  TransformProblem spread;
  spread.x = input_description(in, batch, layer);
  Layout places = image_layout(TensorFormat::nhwc, batch, inputs, size, size);
  places.stride[0] = spread_size * spread_size * inputs;
  places.stride[2] = 2 * spread_size * inputs;
  places.stride[3] = 2 * inputs;
  form.spread_offset = (before * spread_size + before) * inputs * size_of(in);
  spread.y = beginning_at(form.spread_offset, describe(in, places));
  form.spread = spread;
  form.spread_bytes = part.problem.x.bytes();
  form.parts.push_back(std::move(part));
  return form;
}

}  // namespace

char const* name_of(Method method) { return names[static_cast<int>(method)]; }

Method parse_method(std::string const& name) {
  return parse_name<Method>("method for transposed convolutions", name, static_cast<int>(std::size(names)),
                            "valid methods");
}

TensorDescription input_description(DataType type, Index batch, LayerExtents const& layer) {
  return describe(type, image_layout(TensorFormat::nhwc, batch, layer.inputs, layer.size, layer.size));
}

Tensor filter_of(LayerPart const& part, FoldedWeights const& weights, int layer) {
  Tensor const& stored = weights.filter[layer];
  if (part.taps == Taps::all) return copy(stored, part.problem.w);
  Tensor filter(part.problem.w);
  Layout const &from = stored.layout(), &to = filter.layout();
  Shape const& shape = to.shape;  // (output channels, input channels, rows, columns)
  for (Index n = 0; n < shape[0]; ++n)
    for (Index t = 0; t < shape[2]; ++t)
      for (Index q = 0; q < shape[3]; ++q) {
        Source const at = source_of(part.taps, weights.architecture.channel(layer + 1), n, t, q);
        bool const exists = at.r >= 0 && at.s >= 0 && at.r < filter_size && at.s < filter_size;
        Index const read = at.k * from.stride[1] + at.r * from.stride[2] + at.s * from.stride[3];
        Index const write = n * to.stride[0] + t * to.stride[2] + q * to.stride[3];
        for (Index c = 0; c < shape[1]; ++c)
          store(filter.type(), filter.data(), write + c * to.stride[1],
                exists ? static_cast<double>(stored.as<float>()[read + c * from.stride[0]]) : 0);
      }
  return filter;
}

Tensor bias_of(LayerPart const& part, FoldedWeights const& weights, int layer) {
  Tensor bias(part.problem.epilogue.operands.front());
  Tensor const& stored = weights.bias[layer];
  for (Index n = 0; n < bias.size(); ++n) bias.set(n, stored.get(n % stored.size()));
  return bias;
}

LayerForm layer_form(LayerExtents const& layer, Method method, Index batch, DataType in, DataType out,
                     std::string const& epilogue) {
  LayerForm form;
  if (method == Method::zeros)
    form = over_zeros(layer, batch, in, out, epilogue);
  else if (method == Method::merged)
    for (int parity : {0, 1}) form.parts.push_back(rows_of_parity(layer, parity, batch, in, out, epilogue));
  else
    form.parts.push_back(gradient(layer, batch, in, out, epilogue));
  form.method = method;
  return form;
}

}  // namespace cosmati::dcgan
