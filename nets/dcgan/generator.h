// The DCGAN generator: from latent vectors to images.
//   z (100) -> projection, seen as 4x4x512 -> 8x8x256 -> 16x16x128 -> 32x32x64 -> 64x64x3, each by a 5x5
//   transposed convolution of stride 2; batch normalization with stored statistics and ReLU after all but the
//   last, then tanh. The hidden channels are those of the weights; 512, 256, 128 and 64 are the report's.
// out[2i + r - 1, 2j + s - 1, k] += in[i, j, c] * w[r, s, k, c]: the data gradient of a convolution with
// stride 2, padding 1 before and 2 after. Its kernels visit only the taps that have an input; they do not
// multiply by inserted zeros.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cosmati/ops/gemm.h"
#include "cosmati/ops/memory.h"
#include "nets/dcgan/layer.h"

namespace cosmati::dcgan {

struct GeneratorOptions {
  Index batch = 64;
  DataType type = DataType::f32;        // of filters and of tensors between layers: f32, tf32, f16, bf16
  DataType image_type = DataType::f32;  // f32, f16, or u8: (int)((x + 1) / 2 * 255)
  std::array<Method, layer_count> method = {};
  PlanOptions plan = {};  // for all layers
};

// The plan of a layer's convolution; a line of --explain.
struct PlannedPart {
  std::string name;  // "proj", "tconv1", ...
  Method method = Method::automatic;
  std::string problem, kernel, recipe;
  double predicted_seconds = 0;  // 0: no prediction
  double useful_flops = 0;       // multiplications and additions that the network requires for the layer
};

// Prepared for one batch size on one device. Not thread-safe: it owns the buffers between its layers.
class Generator {
 public:
  Generator(FoldedWeights const& weights, Device const& device, GeneratorOptions options);
  Index batch() const { return options_.batch; }
  GeneratorOptions const& options() const { return options_; }
  std::vector<PlannedPart> const& parts() const { return parts_; }

  // z (batch, 100) of latent_type(), images (batch, 64, 64, 3) of options().image_type, both in device
  // memory. Only enqueues, so that it can be recorded.
  void run(void const* z, void* images, Stream stream);
  // For tf32 the first layer is computed in f32: it has few products, and its rounding would be a third of
  // the error.
  static DataType projection_type(DataType type) { return type == DataType::tf32 ? DataType::f32 : type; }
  DataType latent_type() const { return projection_type(options_.type); }

 private:
  struct Part {
    Prepared<ConvolutionProblem> prepared;
    DeviceMemory filter, bias;
    Index out_offset = 0;
  };
  struct Layer {
    std::vector<Part> parts;
    Prepared<TransformProblem> spread;  // if spread_to has memory
    DeviceMemory spread_to;
    Index spread_offset = 0;
    DeviceMemory in;
  };
  Device device_;
  GeneratorOptions options_;
  std::vector<PlannedPart> parts_;
  Prepared<GemmProblem> projection_;
  DeviceMemory projection_filter_, projection_bias_;
  Layer layer_[layer_count];
  DeviceMemory workspace_;
};

// The plan of a generator of these sizes, without preparing it; also for a GPU that is not present.
std::vector<PlannedPart> plan_generator(Architecture const& architecture, Device const& device,
                                        GeneratorOptions const& options);

}  // namespace cosmati::dcgan
