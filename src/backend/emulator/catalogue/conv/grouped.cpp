// The emulator's grouped convolutions on tensor cores, which read their shapes from the arguments.
#include "cosmati/conv/grouped/grouped.h"
#include "cosmati/conv/grouped/grouped_filter_sum.h"

#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/filter/grouped_filter.h"
#include "src/plan/conv/grouped/grouped.h"

namespace cosmati::emulator {
namespace {

template <int fragments, class Element>
void add_image_kernel(KernelTable& table, DataType type) {
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  constexpr GroupedShape shape = plan::emulated_grouped_shape(fragments, static_cast<int>(sizeof(Element)));
  using Traits = GroupedTraits<shape, false, Element, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  add_kernel<&grouped_kernel<Traits>, typename Traits::Params>(
      table, "grouped_kernel",
      plan::GroupedTraits{shape, false, type, types.epilogue, types.destination}.print());
}

template <int fragments, class Element>
void add_filter_kernels(KernelTable& table, DataType type) {
  plan::KernelTypes const types = plan::emulated_types(DataType::f32);
  constexpr GroupedFilterShape shape =
      plan::emulated_grouped_filter_shape(fragments, static_cast<int>(sizeof(Element)));
  using Traits =
      GroupedFilterTraits<shape, false, Element, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  std::string const traits =
      plan::GroupedFilterTraits{shape, false, type, types.epilogue, types.destination}.print();
  add_kernel<&grouped_filter_kernel<Traits>, typename Traits::Params>(table, "grouped_filter_kernel", traits);
  add_kernel<&grouped_filter_sum_kernel<Traits>, typename Traits::Params>(table, "grouped_filter_sum_kernel",
                                                                          traits);
}

template <int fragments>
void add_for(KernelTable& table) {
  add_image_kernel<fragments, f16>(table, DataType::f16);
  add_image_kernel<fragments, tf32>(table, DataType::tf32);
  add_filter_kernels<fragments, f16>(table, DataType::f16);
  add_filter_kernels<fragments, tf32>(table, DataType::tf32);
}

}  // namespace

void add_grouped(KernelTable& table) { add_for<1>(table), add_for<2>(table), add_for<4>(table); }

}  // namespace cosmati::emulator
