// The composed text of a kernel, and tensor maps.
#include "src/program/program.h"

#include <fmt/format.h>

#include "cosmati/ops/error.h"
#include "src/program/tensor_map_limits.h"

namespace cosmati::program {
namespace {

std::string instance(KernelSpec const& kernel, std::string const& traits) {
  std::string const second = kernel.phases == 0 ? kernel.scheduler : std::to_string(kernel.phases);
  return fmt::format("{}<{}{}{}>", kernel.entry, traits, second.empty() ? "" : ", ", second);
}

void check(auto const& tensor) {
  if (std::string const sentence = map_violation(tensor); !sentence.empty())
    throw Error(ErrorCode::bad_request, "a tensor map " + sentence);
}

}  // namespace

arch::TensorMap TensorMapEncoder::operator()(TiledTensor const& tensor) const {
  check(tensor);
  return tiled(tensor);
}
arch::TensorMap TensorMapEncoder::operator()(WindowedTensor const& tensor) const {
  check(tensor);
  return windowed(tensor);
}

std::string KernelSpec::key() const { return instance(*this, traits); }

std::string text_of(KernelSpec const& kernel) {
  std::string text;
  for (std::string const& header : kernel.headers) text += fmt::format("#include \"cosmati/{}\"\n", header);
  if (!kernel.is_composed) return text;
  text +=
      fmt::format("namespace cosmati {{\n{}using ComposedTraits = {};\n", kernel.declarations, kernel.traits);
  for (auto const& [expression, value] : kernel.asserted)
    text += fmt::format("static_assert({} == {});\n", expression, value);
  return text + "}\n";
}

std::string name_expression_of(KernelSpec const& kernel) {
  return "cosmati::" + instance(kernel, kernel.is_composed ? "cosmati::ComposedTraits" : kernel.traits);
}

}  // namespace cosmati::program
