// The launches of a primitive: the texts of its kernels, and their parameters.
#include "src/plan/primitive/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cosmati/epilogue/cuda_text.h"
#include "cosmati/primitive/norm_operation.h"
#include "src/plan/emulated/primitive_instance.h"

namespace cosmati::plan {
namespace {

std::string access_text(PassTensor const& tensor) {
  if (tensor.binding.mask) return fmt::format("KeptElements<{}>", tensor.by_fours);
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
std::string plain_text(PrimitivePass const& pass, char const* real, std::string const& more) {
  return fmt::format(
      "struct ComposedFunction {{\nusing Real = {};\n{}static constexpr int inputs = {}, outputs = 1;\n}};\n",
      real, more, pass.inputs.size());
}

// Windows known at compile time have their own kernels.
bool is_tiled(PrimitivePass const& pass) { return pass.parameters.policy.window.columns > 0; }

bool is_lrn_of_planes(PrimitivePass const& pass) {
  return pass.family == PrimitiveFamily::lrn && pass.parameters.policy.window.rows > 0;
}

bool is_transpose_of_planes(PrimitivePass const& pass) {
  return pass.family == PrimitiveFamily::transpose && is_tiled(pass);
}

bool is_norm(PrimitivePass const& pass) {
  return pass.family == PrimitiveFamily::rows &&
         (pass.parameters.policy.operation & NormOperation::norm) != 0;
}

bool is_norm_with_sums(PrimitivePass const& pass) {
  return is_norm(pass) &&
         (pass.parameters.policy.operation & (NormOperation::sums_weight | NormOperation::sums_bias)) != 0;
}

char const* header_of(PrimitivePass const& pass) {
  constexpr char const* names[] = {"map",     "transpose", "reduce", "rows",
                                   "windows", "lrn",       "gather", "channels"};
  if (pass.family == PrimitiveFamily::windows && is_tiled(pass)) return "window_tiles";
  if (is_lrn_of_planes(pass)) return "lrn_planes";
  if (is_transpose_of_planes(pass)) return "transpose_planes";
  if (is_norm_with_sums(pass)) return "norm_gradient";
  if (is_norm(pass)) return "norm_rows";
  if (pass.family == PrimitiveFamily::rows && pass.parameters.policy.cluster > 1) return "row_clusters";
  return names[static_cast<int>(pass.family)];
}

std::string entry_of(PrimitivePass const& pass) {
  constexpr char const* names[] = {"map",    "transpose", "reduce", "row",
                                   "window", "lrn",       "gather", "channels"};
  std::string name = is_norm_with_sums(pass)        ? "norm_gradient"
                     : is_norm(pass)                ? "norm_row"
                     : is_lrn_of_planes(pass)       ? "lrn_plane"
                     : is_transpose_of_planes(pass) ? "transpose_plane"
                                                    : names[static_cast<int>(pass.family)];
  if (is_tiled(pass)) name += "_tile";
  if (!pass.members.empty()) name += "_group";
  if (pass.parameters.policy.cluster > 1) name += "_cluster";
  return name + "_kernel";
}

// The emulator's kernels take types and functions from their parameters.
PrimitiveInstance emulated_instance(PrimitivePass const& pass) {
  PrimitivePolicy const& policy = pass.parameters.policy;
  PrimitiveInstance instance{.width = policy.width, .window = policy.window};
  if (is_lrn_of_planes(pass)) instance.window.rows = 0;
  bool const rows = pass.family == PrimitiveFamily::rows;
  if (!rows && pass.family != PrimitiveFamily::reduce && pass.family != PrimitiveFamily::channels)
    return instance;
  // Runs of one element have the same kernel in both directions.
  instance.runs_of_terms = policy.runs_of_terms || policy.width == 1;
  if (rows) {
    instance.cached = policy.cached > 0;
    instance.packed = policy.packed;
  }
  instance.cluster = policy.cluster > 1;
  return instance;
}

unsigned threads_of(PrimitivePass const& pass) {
  return pass.members.empty() ? static_cast<unsigned>(pass.parameters.policy.threads) : 256;
}

unsigned shared_bytes_of(PrimitivePass const& pass) {
  return pass.members.empty() ? static_cast<unsigned>(pass.shared_bytes) : 0;
}

program::Launch launch_of(std::size_t kernel, PrimitivePass pass, bool emulated) {
  program::Grid const grid{pass.blocks, pass.splits, 1};
  int const resident_cluster = pass.stays ? pass.parameters.policy.cluster : 0;
  auto const shared = std::make_shared<PrimitivePass const>(std::move(pass));
  PrimitivePass const* const functions = emulated ? shared.get() : nullptr;
  program::Launch launch;
  if (shared->members.empty())
    launch = program::launch_of<PrimitiveParameters>(
        kernel, grid, [shared, functions](program::Run const& run, PrimitiveParameters& to) {
          to = shared->parameters;
          bind(*shared, run, to);
          to.functions = functions;
        });
  else
    launch = program::launch_of<PrimitiveGroup>(
        kernel, grid, [shared, functions](program::Run const& run, PrimitiveGroup& to) {
          to.common = shared->parameters;
          bind(*shared, run, to);
          to.common.functions = functions;
        });
  launch.resident_cluster = resident_cluster;
  return launch;
}

}  // namespace

program::KernelSpec emulated_kernel_of(PrimitivePass const& pass) {
  return {.entry = entry_of(pass),
          .traits = emulated_instance(pass).print(),
          .threads = 256,
          .shared_bytes = shared_bytes_of(pass)};
}

program::Program launches_of(PrimitiveProgram const& primitive, Backend backend) {
  bool const emulated = backend == Backend::emulator;
  program::Program program;
  for (PrimitivePass const& pass : primitive.passes) {
    program.steps.push_back(launch_of(program.kernels.size(), pass, emulated));
    program.kernels.push_back(emulated ? emulated_kernel_of(pass) : kernel_of(pass));
  }
  program.workspace.bytes = primitive.workspace_bytes;
  return program;
}

program::KernelSpec kernel_of(PrimitivePass const& pass) {
  char const* const real = name_of(pass.real);
  PrimitivePolicy const& policy = pass.parameters.policy;
  std::string const counts = pass.counts.empty() ? "u8" : name_of(pass.counts[0].type);
  std::string const more =
      fmt::format("using Labels = Elements<{0}>;\nusing Indices = Elements<{0}>;\n", counts);
  bool const composed = pass.family == PrimitiveFamily::map || pass.family == PrimitiveFamily::reduce ||
                        pass.family == PrimitiveFamily::gather || pass.family == PrimitiveFamily::channels;
  bool const reduces = pass.family == PrimitiveFamily::reduce || pass.family == PrimitiveFamily::channels;
  // The fast approximations suffice for a map with 16-bit outputs, which rounds its results anyway.
  bool const coarse = pass.family == PrimitiveFamily::map && pass.real == DataType::f32 &&
                      std::all_of(pass.outputs.begin(), pass.outputs.end(),
                                  [](PassTensor const& tensor) { return size_of(tensor.type) == 2; });
  std::string functions = composed ? function_text("ComposedFunction", pass.function, real, more, coarse)
                                   : plain_text(pass, real, more);
  if (reduces) functions += function_text("ComposedResult", pass.last, real, "");
  return {.headers = {fmt::format("primitive/{}.h", header_of(pass))},
          .declarations = std::move(functions),
          .entry = entry_of(pass),
          .traits = fmt::format("PrimitiveTraits<PrimitivePolicy{{{}}}, ComposedFunction, {}, {}, {}>",
                                initializer(policy), list_text(pass.inputs), list_text(pass.outputs),
                                reduces ? "ComposedResult" : "ComposedFunction"),
          // The host computes the layout of the parameters; the compiler verifies their sizes.
          .asserted = {{fmt::format("sizeof(PrimitiveParameters) == {} && sizeof(PrimitiveGroup)",
                                    sizeof(PrimitiveParameters)),
                        sizeof(PrimitiveGroup)}},
          .threads = threads_of(pass),
          .shared_bytes = shared_bytes_of(pass),
          .label = composed ? pass.function.expression.text() : ""};
}

}  // namespace cosmati::plan
