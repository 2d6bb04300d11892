// The common requirements of both chwn16 candidates: the processor, and dense tensors with 16 images
// innermost.
#include "src/backend/cpu/conv/chwn16_rules.h"

#include <algorithm>

#include "cosmati/epilogue/vector_level.h"
#include "cosmati/ops/error.h"

namespace cosmati::cpu {
namespace {

bool lies_as(Layout const& layout, Layout const& legal) {
  for (int d = 0; d < layout.rank(); ++d)
    if (layout.extent(d) != 1 && layout.stride[d] != legal.stride[d]) return false;
  return true;
}

std::string strides_of(Layout const& layout) {
  std::string text;
  for (int d = 0; d < layout.rank(); ++d) text += (d > 0 ? ", " : "") + std::to_string(layout.stride[d]);
  return "(" + text + ")";
}

std::string subject(char const* name, TensorDescription const& tensor) {
  return std::string(name) + " is " + to_string(tensor);
}

}  // namespace

std::string violates_isa(Device const& device) {
  return device.avx2 || device.avx512
             ? ""
             : "the processor has neither AVX2 with FMA nor AVX-512; one is required";
}

std::string violates_type(char const* name, TensorDescription const& tensor, DataType legal) {
  if (tensor.type == legal) return {};
  return subject(name, tensor) + "; its type must be " + name_of(legal);
}

std::string violates_chwn16(char const* name, TensorDescription const& tensor) {
  Layout const& layout = tensor.layout;
  if (layout.extent(0) != chwn::images)
    return subject(name, tensor) + "; N must be " + std::to_string(chwn::images) + ", not " +
           std::to_string(layout.extent(0));
  if (layout.size() == 0) return subject(name, tensor) + "; it must not be empty";
  Layout const legal = image_layout(TensorFormat::chwn, layout.extent(0), layout.extent(1), layout.extent(2),
                                    layout.extent(3));
  if (lies_as(layout, legal)) return {};
  return subject(name, tensor) + " with strides " + strides_of(layout) + "; it must be dense CHWN, strides " +
         strides_of(legal);
}

std::string violates_row_major(char const* name, TensorDescription const& tensor) {
  if (tensor.layout.is_row_major()) return {};
  return subject(name, tensor) + " with strides " + strides_of(tensor.layout) +
         "; it must be dense and row-major, strides " + strides_of(row_major(tensor.shape()));
}

chwn::Kernels const& chwn_kernels(Device const& device) {
  using epilogue::VectorLevel;
  VectorLevel const needed = device.avx512 ? VectorLevel::v4 : VectorLevel::v3;
  VectorLevel const here = epilogue::best_vector_level();
  if (here < needed)
    throw Error(ErrorCode::unavailable, std::string("the plan is for a processor with ") + name_of(needed) +
                                            "; this one, or COSMATI_MAX_CPU_ISA, has " + name_of(here));
  return device.avx512 ? chwn::kernels_v4 : chwn::kernels_v3;
}

int chwn_parts(Index work, Index minimum, Device const& device) {
  return static_cast<int>(std::clamp<Index>(work / minimum, 1, std::max(device.threads, 1)));
}

}  // namespace cosmati::cpu
