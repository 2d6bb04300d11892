// Sources of the kernels of primitives, and their launches.
#include "src/backend/cuda/primitive.h"

#include <fmt/format.h>

#include <algorithm>

#include "cosmati/epilogue/cuda_text.h"
#include "cosmati/primitive/norm_operation.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"

namespace cosmati::cuda {
namespace {

using plan::PassTensor;
using plan::PrimitiveFamily;
using plan::PrimitiveFunction;

std::string access_text(PassTensor const& tensor) {
  if (tensor.binding.mask) return "KeptElements";
  return fmt::format("Elements<{}, {}>", name_of(tensor.type), tensor.same);
}

std::string list_text(std::vector<PassTensor> const& tensors) {
  std::string text;
  for (PassTensor const& tensor : tensors) text += (text.empty() ? "" : ", ") + access_text(tensor);
  return "AccessList<" + text + ">";
}

// The function of one element: names in the expression map to inputs, outputs and scalars of the parameters.
std::string function_text(char const* name, PrimitiveFunction const& function, char const* real,
                          std::string const& more, bool coarse = false) {
  auto const& expression = function.expression;
  std::string text = fmt::format(
      "struct {} {{\nusing Real = {};\n{}static constexpr int inputs = {}, outputs = {};\n"
      "COSMATI_DEVICE static Real value(Real acc, Real c, Real const* scalar, Real const* operand, Real* "
      "store) {{\n"
      "{}}}\n"
      "COSMATI_DEVICE static void apply(PrimitiveParameters const& params, Real const (&in)[inputs], "
      "Real (&out)[outputs]) {{\n",
      name, real, more, function.inputs, function.outputs, epilogue::to_cuda(expression, coarse));
  auto const array = [&text](char const* array_name, std::vector<std::string> const& values, bool is_const) {
    std::string list;
    for (std::string const& value : values) list += (list.empty() ? "" : ", ") + value;
    text += fmt::format("Real {}{}[{}] = {{{}}};\n", is_const ? "const " : "", array_name,
                        std::max<std::size_t>(values.size(), 1), list);
  };
  std::vector<std::string> scalars, operands;
  for (int const scalar : function.scalars) scalars.push_back(fmt::format("Real(params.scalar[{}])", scalar));
  for (int const operand : function.operands) operands.push_back(fmt::format("in[{}]", operand));
  array("scalar", scalars, true);
  array("operand", operands, true);
  array("store", std::vector<std::string>(function.stores.size(), "Real(0)"), false);
  text += fmt::format("out[{}] = value(in[{}], Real(0), scalar, operand, store);\n", function.result,
                      function.accumulator);
  for (std::size_t i = 0; i < function.stores.size(); ++i)
    text += fmt::format("out[{}] = store[{}];\n", function.stores[i], i);
  return text + "}\n};\n";
}

// The source for kernel families without an expression.
std::string plain_text(plan::PrimitivePass const& pass, char const* real, std::string const& more) {
  return fmt::format(
      "struct ComposedFunction {{\nusing Real = {};\n{}static constexpr int inputs = {}, outputs = 1;\n}};\n",
      real, more, pass.inputs.size());
}

// Windows known at compile time have their own kernels.
bool is_tiled(plan::PrimitivePass const& pass) { return pass.parameters.policy.window.columns > 0; }

bool is_norm(plan::PrimitivePass const& pass) {
  return pass.family == PrimitiveFamily::rows &&
         (pass.parameters.policy.operation & NormOperation::norm) != 0;
}

char const* header_of(plan::PrimitivePass const& pass) {
  constexpr char const* names[] = {"map",     "transpose", "reduce", "rows",
                                   "windows", "lrn",       "gather", "channels"};
  if (pass.family == PrimitiveFamily::windows && is_tiled(pass)) return "window_tiles";
  if (is_norm(pass)) return "norm_rows";
  if (pass.family == PrimitiveFamily::rows && pass.parameters.policy.cluster > 1) return "row_clusters";
  return names[static_cast<int>(pass.family)];
}
std::string kernel_of(plan::PrimitivePass const& pass) {
  constexpr char const* names[] = {"map",    "transpose", "reduce", "row",
                                   "window", "lrn",       "gather", "channels"};
  std::string name = is_norm(pass) ? "norm_row" : names[static_cast<int>(pass.family)];
  if (is_tiled(pass)) name += "_tile";
  if (!pass.members.empty()) name += "_group";
  if (pass.parameters.policy.cluster > 1) name += "_cluster";
  return name + "_kernel";
}

}  // namespace

jit::Source primitive_source(plan::PrimitivePass const& pass, Gpu const& gpu) {
  char const* const real = name_of(pass.real);
  std::string const counts = pass.counts.empty() ? "u8" : name_of(pass.counts[0].type);
  std::string const more =
      fmt::format("using Labels = Elements<{0}>;\nusing Indices = Elements<{0}>;\n", counts);
  bool const composed = pass.family == PrimitiveFamily::map || pass.family == PrimitiveFamily::reduce ||
                        pass.family == PrimitiveFamily::gather || pass.family == PrimitiveFamily::channels;
  bool const reduces = pass.family == PrimitiveFamily::reduce || pass.family == PrimitiveFamily::channels;
  std::string text =
      fmt::format("#include \"cosmati/primitive/{}.h\"\nnamespace cosmati {{\n", header_of(pass));
  // The fast approximations suffice for a map with 16-bit outputs, which rounds its results anyway.
  bool const coarse = pass.family == PrimitiveFamily::map && pass.real == DataType::f32 &&
                      std::all_of(pass.outputs.begin(), pass.outputs.end(),
                                  [](PassTensor const& tensor) { return size_of(tensor.type) == 2; });
  text += composed ? function_text("ComposedFunction", pass.function, real, more, coarse)
                   : plain_text(pass, real, more);
  if (reduces) text += function_text("ComposedResult", pass.last, real, "");
  text += fmt::format(
      "using ComposedTraits = PrimitiveTraits<PrimitivePolicy{{{}}}, ComposedFunction, {}, {}, {}>;\n",
      plan::initializer(pass.parameters.policy), list_text(pass.inputs), list_text(pass.outputs),
      reduces ? "ComposedResult" : "ComposedFunction");
  // The host computes the layout of the parameters; the compiler verifies their sizes.
  text +=
      fmt::format("static_assert(sizeof(PrimitiveParameters) == {} && sizeof(PrimitiveGroup) == {});\n}}\n",
                  sizeof(PrimitiveParameters), sizeof(PrimitiveGroup));
  jit::Source source;
  source.text = std::move(text);
  source.name_expression = fmt::format("cosmati::{}<cosmati::ComposedTraits>", kernel_of(pass));
  source.architecture = architecture_of(gpu);
  source.label = composed ? pass.function.expression.text() : "";
  return source;
}

PrimitiveLaunches::PrimitiveLaunches(plan::PrimitiveProgram program, Gpu const& gpu)
    : program_(std::move(program)), ordinal_(gpu.ordinal) {
  std::vector<jit::Source> sources;
  for (plan::PrimitivePass const& pass : program_.passes) sources.push_back(primitive_source(pass, gpu));
  auto const cubins = jit::kernel_cache().get_all(sources);
  for (std::size_t i = 0; i < cubins.size(); ++i) {
    functions_.push_back(Module(gpu.ordinal, cubins[i].image.data()).function(cubins[i].lowered_name));
    plan::PrimitivePass& pass = program_.passes[i];
    functions_.back().allow_shared_bytes(pass.shared_bytes);
    if (!pass.stays) continue;
    int const cluster = pass.parameters.policy.cluster;
    int const most =
        functions_.back().clusters_at_once(cluster, pass.parameters.policy.threads, pass.shared_bytes);
    pass.blocks = std::min(pass.blocks, static_cast<unsigned>(std::max(1, most) * cluster));
  }
}

void PrimitiveLaunches::enqueue(plan::PrimitiveRun const& run, Stream stream) const {
  if (program_.passes.empty()) return;
  Current const current(ordinal_);
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    plan::PrimitivePass const& pass = program_.passes[i];
    if (!pass.members.empty()) {
      PrimitiveGroup group;
      group.common = pass.parameters;
      plan::bind(pass, run, group);
      functions_[i].launch({pass.blocks, 1, 1}, 256, 0, group, stream);
      continue;
    }
    PrimitiveParameters parameters = pass.parameters;
    plan::bind(pass, run, parameters);
    functions_[i].launch({pass.blocks, pass.splits, 1}, static_cast<unsigned>(parameters.policy.threads),
                         static_cast<unsigned>(pass.shared_bytes), parameters, stream);
  }
}

}  // namespace cosmati::cuda
