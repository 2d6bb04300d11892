// Programs of primitives: pointers, predictions, descriptions.
#include "src/plan/primitive/program.h"

#include <fmt/format.h>

#include <algorithm>

namespace cosmati::plan {

char const* name_of(PrimitiveFamily family) {
  constexpr char const* names[] = {"map",     "transpose", "reduce", "rows",
                                   "windows", "lrn",       "gather", "channels"};
  return names[static_cast<int>(family)];
}

namespace {

void* address_of(PassTensor const& tensor, program::Run const& run) {
  Binding const& binding = tensor.binding;
  if (binding.mask) return nullptr;
  std::byte* const base =
      binding.argument < 0
          ? run.workspace + binding.workspace
          : static_cast<std::byte*>(run.arguments[static_cast<std::size_t>(binding.argument)]);
  return base + binding.first * size_of(tensor.type);
}

}  // namespace

void bind(PrimitivePass const& pass, program::Run const& run, PrimitiveParameters& parameters) {
  for (std::size_t i = 0; i < pass.inputs.size(); ++i)
    parameters.tensor[i].data = address_of(pass.inputs[i], run);
  for (std::size_t i = 0; i < pass.outputs.size(); ++i)
    parameters.tensor[primitive_inputs + i].data = address_of(pass.outputs[i], run);
  if (!pass.counts.empty()) {
    bool const written = pass.family == PrimitiveFamily::windows && pass.parameters.policy.operation < 3;
    parameters.tensor[written ? primitive_inputs + 1 : primitive_inputs - 1].data =
        address_of(pass.counts[0], run);
  }
  std::copy(run.scalars.begin(), run.scalars.end(), parameters.scalar);
  parameters.step = run.step;
}

double predict(PrimitiveProgram const& program, Gpu const& gpu) {
  constexpr double launch_seconds = 2.5e-6, share_of_bandwidth = 0.88;
  double seconds = 0;
  for (PrimitivePass const& pass : program.passes)
    seconds += launch_seconds + pass.bytes / (share_of_bandwidth * gpu.memory_bytes_per_second);
  return seconds;
}

std::string to_string(PrimitiveProgram const& program) {
  std::string text;
  for (PrimitivePass const& pass : program.passes) text += (text.empty() ? "" : "; then ") + pass.text;
  return text.empty() ? "nothing to do" : text;
}

std::string initializer(PrimitivePolicy const& p) {
  std::string const bulk = p.bulk ? ", .bulk = true" : "",
                    fixed = p.fixed == 0 ? "" : fmt::format(", .fixed = {}", p.fixed),
                    groups = p.step == 0 && p.groups == 1
                                 ? ""
                                 : fmt::format(", .step = {}, .groups = {}", p.step, p.groups);
  return fmt::format(
      ".threads = {}, .width = {}, .unroll = {}, .kept = {}, .terms = {}, .along = {}, .runs_of_terms = {}, "
      ".cached = {}, "
      ".packed = {}, "
      ".operation = {}, .indices = {}, .columns_axis = {}, .cluster = {}, .whole = {}, "
      ".backwards = {}{}, .window = {{{}, {}, {}, {}, {}, {}, {}}}{}{}",
      p.threads, p.width, p.unroll, p.kept, p.terms, p.along, p.runs_of_terms, p.cached, p.packed,
      p.operation, p.indices, p.columns_axis, p.cluster, p.whole, p.backwards, bulk, p.window.rows,
      p.window.columns, p.window.down, p.window.along, p.window.pad, p.window.padded,
      p.window.runs_of_columns, fixed, groups);
}

}  // namespace cosmati::plan
