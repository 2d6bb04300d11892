// Plans, prepares and runs the generator's five layers.
#include "nets/dcgan/generator.h"

#include <algorithm>

#include "cosmati/epilogue/parse.h"

namespace cosmati::dcgan {
namespace {

// One planned form of a layer.
struct LayerPlan {
  LayerForm form;
  std::vector<Plan<ConvolutionProblem>> parts;
  double predicted_seconds = 0;  // 0 if any part lacks a prediction
};

// (int)((x + 1) / 2 * 255) in f32, for x >= -1.
constexpr char const* as_byte =
    "let level = (tanh(acc + bias[k]) + 1) / 2 * 255; let near = round(level); select(near > level, near - "
    "1, near)";

std::string epilogue_of(int layer, GeneratorOptions const& options) {
  if (layer + 1 < layer_count) return "relu(acc + bias[k])";
  return options.image_type == DataType::u8 ? as_byte : "tanh(acc + bias[k])";
}

double prediction(std::vector<Considered> const& considered, std::string const& kernel) {
  for (Considered const& line : considered)
    if (line.kernel == kernel) return line.predicted_seconds;
  return 0;
}
std::string recipe(std::vector<Considered> const& considered, std::string const& kernel) {
  for (Considered const& line : considered)
    if (line.kernel == kernel) return line.recipe;
  return {};
}

LayerPlan planned(Architecture const& architecture, int layer, Method method, Device const& device,
                  GeneratorOptions const& options) {
  LayerPlan result;
  DataType const out = layer + 1 < layer_count ? options.type : options.image_type;
  result.form = layer_form(extents_of(architecture, layer), method, options.batch, options.type, out,
                           epilogue_of(layer, options));
  PlanOptions plan_options = options.plan;
  if (method == Method::naive) plan_options.kernel = "direct";
  bool predicted = true;
  for (LayerPart const& part : result.form.parts) {
    result.parts.push_back(make_plan(part.problem, device, plan_options));
    auto const& plan = result.parts.back();
    double const seconds = prediction(plan.considered, plan.kernel);
    predicted = predicted && seconds > 0;
    result.predicted_seconds += seconds;
  }
  if (!predicted) result.predicted_seconds = 0;
  return result;
}

LayerPlan chosen(Architecture const& architecture, int layer, Device const& device,
                 GeneratorOptions const& options) {
  Method const asked = options.method[static_cast<std::size_t>(layer)];
  if (asked != Method::automatic) return planned(architecture, layer, asked, device, options);
  LayerPlan gradient = planned(architecture, layer, Method::gradient, device, options);
  if (gradient.predicted_seconds <= 0) return gradient;
  LayerPlan merged = planned(architecture, layer, Method::merged, device, options);
  bool const faster = merged.predicted_seconds > 0 && merged.predicted_seconds < gradient.predicted_seconds;
  return faster ? std::move(merged) : std::move(gradient);
}

GemmProblem projection_problem(Architecture const& architecture, GeneratorOptions const& options) {
  Index const projected = architecture.features();
  GemmProblem problem;
  DataType const type = Generator::projection_type(options.type);
  problem.a = describe(type, Shape(1, options.batch, latent_size));
  problem.b = describe(type, Shape(1, latent_size, projected));
  problem.d = describe(options.type, Shape(1, options.batch, projected));
  // With tf32 the factors remain f32: products of pieces are as exact, and faster on tensor cores.
  if (options.type == DataType::tf32) problem.compute = ComputeMode::bf16x6;
  problem.epilogue = {epilogue::parse("relu(acc + bias[n])", epilogue::gemm_indices),
                      {describe(DataType::f32, Shape(projected))},
                      {}};
  return problem;
}

// A kernel or policy requested by name applies to the convolutions, not to the projection.
PlanOptions projection_options(GeneratorOptions const& options) {
  PlanOptions plan;
  plan.max_workspace = options.plan.max_workspace;
  plan.tuning = options.plan.tuning;
  return plan;
}

std::string size_text(Architecture const& architecture, Index batch, int layer) {
  std::string const size = std::to_string(architecture.size(layer));
  return std::to_string(batch) + "x" + size + "x" + size + "x" + std::to_string(architecture.channel(layer));
}

template <class Problem>
PlannedPart line(std::string name, std::string problem, Plan<Problem> const& plan) {
  PlannedPart part;
  part.name = std::move(name);
  part.problem = std::move(problem);
  part.kernel = plan.kernel;
  part.recipe = recipe(plan.considered, plan.kernel);
  part.predicted_seconds = prediction(plan.considered, plan.kernel);
  return part;
}

void add_lines(std::vector<PlannedPart>& lines, Architecture const& architecture, int layer,
               LayerPlan const& plan, GeneratorOptions const& options) {
  // Every input element is multiplied by every tap, except taps that extend beyond the edge: 5 of 2 * size in
  // each dimension.
  LayerExtents const extents = extents_of(architecture, layer);
  double const size = static_cast<double>(extents.size), taps = 5 * size - 3;
  double const flops = 2.0 * static_cast<double>(options.batch) * taps * taps *
                       static_cast<double>(extents.inputs) * static_cast<double>(extents.outputs);
  for (auto const& part : plan.parts) {
    lines.push_back(line("tconv" + std::to_string(layer + 1),
                         size_text(architecture, options.batch, layer) + " -> " +
                             size_text(architecture, options.batch, layer + 1),
                         part));
    lines.back().method = plan.form.method;
    lines.back().useful_flops = flops / static_cast<double>(plan.parts.size());
  }
}

PlannedPart projection_line(Architecture const& architecture, Plan<GemmProblem> const& plan,
                            GeneratorOptions const& options) {
  PlannedPart part = line(
      "proj", std::to_string(options.batch) + "x100 -> " + size_text(architecture, options.batch, 0), plan);
  part.useful_flops = 2.0 * static_cast<double>(options.batch) * static_cast<double>(latent_size) *
                      static_cast<double>(architecture.features());
  return part;
}

void check(GeneratorOptions const& options) {
  auto const one_of = [](DataType type, std::initializer_list<DataType> list) {
    return std::find(list.begin(), list.end(), type) != list.end();
  };
  if (!one_of(options.type, {DataType::f32, DataType::tf32, DataType::f16, DataType::bf16}))
    throw Error(ErrorCode::bad_request, std::string("the generator does not compute in ") +
                                            name_of(options.type) + "; valid values: f32, tf32, f16, bf16");
  if (!one_of(options.image_type, {DataType::f32, DataType::f16, DataType::u8}))
    throw Error(ErrorCode::bad_request, std::string("images cannot be of type ") +
                                            name_of(options.image_type) + "; valid values: f32, f16, u8");
}

DeviceMemory uploaded(Device const& device, Tensor const& tensor) {
  DeviceMemory memory(device, tensor.bytes());
  memory.upload(tensor.data(), tensor.bytes());
  return memory;
}

}  // namespace

Generator::Generator(FoldedWeights const& weights, Device const& device, GeneratorOptions options)
    : device_(device), options_(std::move(options)) {
  check(options_);
  std::size_t workspace_bytes = 256;
  auto const make = [&](auto const& plan) {
    auto prepared = prepare(plan);
    workspace_bytes = std::max(workspace_bytes, prepared.workspace_bytes());
    return prepared;
  };
  Architecture const& architecture = weights.architecture;
  auto const projection =
      make_plan(projection_problem(architecture, options_), device, projection_options(options_));
  parts_.push_back(projection_line(architecture, projection, options_));
  projection_ = make(projection);
  projection_filter_ =
      uploaded(device, copy(weights.projection, describe(latent_type(), weights.projection.shape())));
  projection_bias_ = uploaded(device, weights.projection_bias);
  for (int i = 0; i < layer_count; ++i) {
    LayerPlan const plan = chosen(architecture, i, device, options_);
    add_lines(parts_, architecture, i, plan, options_);
    Layer& layer = layer_[i];
    TensorDescription const in = input_description(options_.type, batch(), extents_of(architecture, i));
    layer.in = DeviceMemory(device, static_cast<std::size_t>(in.bytes()));
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      LayerPart const& part = plan.form.parts[p];
      layer.parts.push_back({make(plan.parts[p]), uploaded(device, filter_of(part, weights, i)),
                             uploaded(device, bias_of(part, weights, i)), part.out_offset});
    }
    if (plan.form.spread) {
      layer.spread = make(make_plan(*plan.form.spread, device));
      layer.spread_to = DeviceMemory(device, static_cast<std::size_t>(plan.form.spread_bytes));
      layer.spread_to.fill(0);
      layer.spread_offset = plan.form.spread_offset;
    }
  }
  workspace_ = DeviceMemory(device, workspace_bytes);
}

void Generator::run(void const* z, void* images, Stream stream) {
  void const* const projection_bias[] = {projection_bias_.data()};
  projection_.run(
      {.a = z, .b = projection_filter_.data(), .d = layer_[0].in.data(), .operands = projection_bias},
      workspace_.data(), stream);
  for (int i = 0; i < layer_count; ++i) {
    Layer const& layer = layer_[i];
    auto* const out = static_cast<std::byte*>(i + 1 < layer_count ? layer_[i + 1].in.data() : images);
    void const* in = layer.in.data();
    if (layer.spread_to.bytes() > 0) {
      layer.spread.run({.x = in, .y = static_cast<std::byte*>(layer.spread_to.data()) + layer.spread_offset},
                       workspace_.data(), stream);
      in = layer.spread_to.data();
    }
    for (Part const& part : layer.parts) {
      void const* const bias[] = {part.bias.data()};
      ConvolutionProblem::Arguments arguments{.w = part.filter.data(), .operands = bias};
      bool const forward = part.prepared.plan().problem.direction == ConvolutionDirection::forward;
      (forward ? arguments.x : arguments.dy) = in;
      (forward ? arguments.y : arguments.dx) = out + part.out_offset;
      part.prepared.run(arguments, workspace_.data(), stream);
    }
  }
}

std::vector<PlannedPart> plan_generator(Architecture const& architecture, Device const& device,
                                        GeneratorOptions const& options) {
  check(options);
  auto const projection =
      make_plan(projection_problem(architecture, options), device, projection_options(options));
  std::vector<PlannedPart> lines{projection_line(architecture, projection, options)};
  for (int i = 0; i < layer_count; ++i)
    add_lines(lines, architecture, i, chosen(architecture, i, device, options), options);
  return lines;
}

}  // namespace cosmati::dcgan
