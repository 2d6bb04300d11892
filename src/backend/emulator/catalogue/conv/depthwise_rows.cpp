// The emulator's depthwise convolutions, and their gradients, by threads that walk down the image.
#include "cosmati/conv/depthwise/depthwise_rows.h"

#include <iterator>
#include <utility>

#include "cosmati/conv/depthwise/depthwise_rows_filter.h"
#include "cosmati/conv/depthwise/depthwise_tile_filter.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/conv/depthwise_rows.h"
#include "src/plan/conv/filter/depthwise_tile_filter.h"

namespace cosmati::emulator {
namespace {

// Like OffsetDestination, with the type of the result known at run time.
struct HostOffsetDestination {
  using Arguments = plan::HostDestinationArguments;
  struct Place {
    Arguments const& arguments;
    Index offset;
  };
  static Place at(Arguments const& d, Index offset) { return {d, offset}; }
  template <int count>
  static void store(Place const& to, int offset, Index stride, double const (&value)[count]) {
    for (int i = 0; i < count; ++i)
      cosmati::store(to.arguments.type, to.arguments.digits.data, to.offset + offset + i * stride, value[i]);
  }
};

template <DepthwiseRowsShape shape>
void add_walk(KernelTable& table) {
  using Traits = DepthwiseRowsTraits<f32, f32, f32, ConvolutionHostEpilogue, HostOffsetDestination, shape>;
  add_kernel<&depthwise_rows_kernel<Traits>, typename Traits::Params>(
      table, "depthwise_rows_kernel",
      plan::DepthwiseRowsTraits{plan::emulated_types(DataType::f32), shape}.print());
}

template <DepthwiseRowsShape shape>
void add_filter(KernelTable& table) {
  using Traits = DepthwiseRowsFilterTraits<f32, f32, f32, ConvolutionHostEpilogue, ConvolutionHostDestination,
                                           shape, true>;
  std::string const traits =
      plan::DepthwiseRowsFilterTraits{plan::emulated_types(DataType::f32), shape, true}.print();
  add_kernel<&depthwise_rows_filter_kernel<Traits>, typename Traits::Params>(
      table, "depthwise_rows_filter_kernel", traits);
  add_kernel<&depthwise_rows_filter_sum_kernel<Traits>, typename Traits::Params>(
      table, "depthwise_rows_filter_sum_kernel", traits);
}

constexpr DepthwiseRowsShape transposed(DepthwiseRowsShape shape) {
  shape.transposed = true;
  return shape;
}
constexpr DepthwiseRowsShape with_vector(DepthwiseRowsShape shape, int vector) {
  shape.vector = vector;
  return shape;
}

constexpr DepthwiseRowsShape packed(DepthwiseRowsShape shape) {
  shape.packed_filter = true;
  return shape;
}
constexpr DepthwiseRowsShape alone(DepthwiseRowsShape shape) {
  plan::compute_alone(shape);
  return shape;
}

template <DepthwiseRowsShape shape>
void add_directions(KernelTable& table) {
  add_walk<shape>(table);
  add_walk<transposed(shape)>(table);
  add_filter<shape>(table);
  if constexpr (shape.channels_last) {
    add_walk<packed(shape)>(table);
    add_walk<transposed(packed(shape))>(table);
    if constexpr (!shape.dilated) {
      add_walk<packed(alone(shape))>(table);
      add_walk<transposed(packed(alone(shape)))>(table);
      add_filter<alone(shape)>(table);
    }
  }
}

template <DepthwiseTileShape shape>
void add_tile(KernelTable& table) {
  using Traits =
      DepthwiseTileTraits<f32, f32, f32, ConvolutionHostEpilogue, ConvolutionHostDestination, shape>;
  program::KernelSpec const spec{
      .entry = "depthwise_tile_filter_kernel",
      .traits = plan::DepthwiseTileTraits{plan::emulated_types(DataType::f32), shape}.print()};
  table[spec.key()] = [](Grid grid, int threads, unsigned shared_bytes, void const* parameters,
                         int host_threads) {
    launch_kernel_clusters<&depthwise_tile_filter_kernel<Traits>>(
        grid, {shape.cluster}, threads, shared_bytes,
        *static_cast<typename Traits::Params const*>(parameters), host_threads);
  };
}
template <DepthwiseTileShape shape>
void add_clusters_of(KernelTable& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (add_tile<plan::in_clusters(shape, plan::emulated_tile_clusters[i])>(table), ...);
  }
  (std::make_index_sequence<std::size(plan::emulated_tile_clusters)>{});
}

}  // namespace

void add_depthwise_rows(KernelTable& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (add_directions<plan::emulated_rows_shapes[i]>(table), ...);
    (add_directions<with_vector(plan::emulated_rows_shapes[i], 1)>(table), ...);
  }
  (std::make_index_sequence<std::size(plan::emulated_rows_shapes)>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (add_clusters_of<plan::emulated_tile_shapes[i]>(table), ...);
  }
  (std::make_index_sequence<std::size(plan::emulated_tile_shapes)>{});
}

}  // namespace cosmati::emulator
