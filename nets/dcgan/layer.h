// Methods to compute a transposed convolution of the generator with the library.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cosmati/ops/convolution.h"
#include "cosmati/ops/elementwise.h"
#include "nets/dcgan/weights.h"

namespace cosmati::dcgan {

// With out[2i + r - 1, 2j + s - 1, k] += in[i, j, c] * w[r, s, k, c]:
//   gradient  the data gradient of a convolution with stride 2: one product per phase
//   merged    two forward convolutions, for even and for odd rows, whose output channels are (column parity,
//             k): windows of 2x3 and 3x3 inputs; fewer and wider products, with 5 of 6 taps nonzero
//   naive     gradient by the kernel with one thread per element (the report's section 2.2)
//   zeros     inputs with zeros inserted between them, then a 5x5 convolution (the report's section 2.3):
//             three of four products are with zeros
//   automatic gradient or merged, whichever has the shorter predicted time; gradient without predictions
enum class Method : unsigned char { automatic, gradient, merged, naive, zeros };
char const* name_of(Method method);
Method parse_method(std::string const& name);  // throws Error listing the valid names

// Filters and biases with folded batch normalization, as used at run time.
struct FoldedWeights {
  Architecture architecture;
  Tensor projection;           // (latent_size, architecture.features())
  Tensor projection_bias;      // (architecture.features())
  Tensor filter[layer_count];  // (C, K, 5, 5) as a convolution's filter, C innermost in memory
  Tensor bias[layer_count];    // (K)
  explicit FoldedWeights(Weights const& weights);
};

// A layer from (size, size, inputs) to (2 size, 2 size, outputs).
struct LayerExtents {
  Index inputs, outputs, size;
};
inline LayerExtents extents_of(Architecture const& architecture, int layer) {
  return {architecture.channel(layer), architecture.channel(layer + 1), architecture.size(layer)};
}

// The layer's input images, NHWC.
TensorDescription input_description(DataType type, Index batch, LayerExtents const& layer);

// The filter taps of the layer that a part multiplies, and their order.
enum class Taps : unsigned char { all, even_rows, odd_rows, turned };

// One convolution of a layer.
struct LayerPart {
  ConvolutionProblem problem;
  Taps taps = Taps::all;
  Index out_offset = 0;  // bytes from the layer's output to this part's output
};
// Return its filter and bias (f32) in the problem's layout, in host memory.
Tensor filter_of(LayerPart const& part, FoldedWeights const& weights, int layer);
Tensor bias_of(LayerPart const& part, FoldedWeights const& weights, int layer);

// One layer as problems: [spread the inputs,] then each part.
struct LayerForm {
  Method method = Method::gradient;
  std::vector<LayerPart> parts;
  std::optional<TransformProblem> spread;  // from dense inputs to their positions among the zeros
  Index spread_bytes = 0, spread_offset = 0;
};

// `epilogue` uses acc and bias[k]. `in`: the type of inputs and filters; `out`: of the output.
LayerForm layer_form(LayerExtents const& layer, Method method, Index batch, DataType in, DataType out,
                     std::string const& epilogue);

}  // namespace cosmati::dcgan
