// One Pointwise per shape of a region, run on pointers to the first elements of a region.
#include "src/backend/cpu/region_epilogue.h"

#include <algorithm>
#include <array>

#include "src/backend/cpu/convert_row.h"

namespace cosmati::cpu {
namespace {

TensorDescription resized(TensorDescription tensor, Shape const& shape) {
  if (tensor.present()) tensor.layout.shape = shape;
  return tensor;
}

}  // namespace

RegionEpilogue::RegionEpilogue(Epilogue const& epilogue, std::span<std::string_view const> indices,
                               TensorDescription const& source, TensorDescription const& result,
                               bool in_double)
    : epilogue_(epilogue),
      indices_(indices.begin(), indices.end()),
      source_(source),
      result_(result),
      in_double_(in_double) {
  for (std::size_t i = 0; i < epilogue.operands.size(); ++i)
    operands_.push_back({epilogue.operands[i].type, spread_operand(epilogue, i, result.shape(), indices)});
}

void RegionEpilogue::add(TensorDescription const& sums) {
  Shape const& shape = sums.shape();
  if (find(shape) != nullptr) return;
  PointwiseProblem problem = epilogue_pointwise(epilogue_, indices_, sums, resized(source_, shape),
                                                resized(result_, shape), in_double_);
  for (TensorDescription& store : problem.stores) store = resized(store, shape);
  regions_.emplace_back(shape, Pointwise(problem, 1));
}

std::size_t RegionEpilogue::workspace_bytes() const {
  std::size_t maximum = 0;
  for (auto const& [shape, pointwise] : regions_) maximum = std::max(maximum, pointwise.workspace_bytes());
  return maximum;
}

void RegionEpilogue::run(Shape const& shape, Shape const& first, PointwiseArguments const& arguments,
                         std::byte* workspace) const {
  auto const at = [&first](TensorDescription const& tensor, auto* data) {
    return element(tensor.type, data, tensor.layout.offset_of(first.extent));
  };
  std::array<void const*, max_epilogue_operands> operands;
  for (std::size_t i = 0; i < operands_.size(); ++i) operands[i] = at(operands_[i], arguments.operands[i]);
  auto const& described = epilogue_.stores;
  std::array<void*, max_epilogue_stores> stores;
  for (std::size_t i = 0; i < described.size(); ++i) stores[i] = at(described[i], arguments.stores[i]);
  find(shape)->run({arguments.accumulator,
                    source_.present() ? at(source_, arguments.source) : nullptr,
                    {operands.data(), operands_.size()},
                    arguments.scalars,
                    at(result_, arguments.result),
                    {stores.data(), described.size()}},
                   workspace);
}

Pointwise const* RegionEpilogue::find(Shape const& shape) const {
  for (auto const& [known, pointwise] : regions_)
    if (known == shape) return &pointwise;
  return nullptr;
}

}  // namespace cosmati::cpu
