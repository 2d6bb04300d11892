// Reductions, row operations and channel statistics in the emulator.
#include "cosmati/primitive/channels.h"
#include "cosmati/primitive/norm_gradient.h"
#include "cosmati/primitive/norm_rows.h"
#include "cosmati/primitive/row_clusters.h"
#include "src/backend/emulator/catalogue/primitive_host.h"

namespace cosmati::emulator {
namespace {

constexpr int values = 4;  // in a partial result
using Terms = HostFunction<false, primitive_inputs, values>;
using Result = HostFunction<true, values, primitive_outputs>;
template <int width, bool runs_of_terms>
using Reduce = HostTraits<width, runs_of_terms, 0, Terms, Result>;

using Row = HostFunction<false, 2, 1>;
template <int width, bool runs_of_terms, int cached, int cluster = 1, bool packed = false>
using Rows = HostTraits<width, runs_of_terms, cached, Row, Row, cluster, WindowPolicy{}, packed>;

using Channel = HostTraits<4, true, 0, HostFunction<false, 5, 1>, HostFunction<true, 3, 2>, 2>;

template <class Traits>
void add_row(KernelTable& table) {
  if constexpr (Traits::cluster > 1)
    add_clusters<&row_cluster_kernel<Traits>, Traits>(table, "row_cluster_kernel");
  else
    add_pass<&row_kernel<Traits>, Traits>(table, "row_kernel");
}

template <class Traits>
void add_norm(KernelTable& table) {
  add_pass<&norm_row_kernel<Traits>, Traits>(table, "norm_row_kernel");
}

template <class Traits>
void add_reduction(KernelTable& table) {
  add_pass<&reduce_kernel<Traits>, Traits>(table, "reduce_kernel");
}

}  // namespace

void add_primitives_of_rows(KernelTable& table) {
  add_reduction<Reduce<1, true>>(table);
  add_reduction<Reduce<4, true>>(table);
  add_reduction<Reduce<4, false>>(table);
  add_row<Rows<1, true, 0>>(table);
  add_row<Rows<4, false, 0>>(table);
  add_row<Rows<4, true, 0>>(table);
  add_row<Rows<4, true, 2>>(table);
  add_row<Rows<4, true, 2, 1, true>>(table);
  add_row<Rows<4, true, 2, 2>>(table);
  add_row<Rows<4, true, 2, 2, true>>(table);
  add_norm<Rows<1, true, 0>>(table);
  add_norm<Rows<4, true, 0>>(table);
  add_norm<Rows<4, true, 2>>(table);
  add_pass<&norm_gradient_kernel<Rows<4, true, 2>>, Rows<4, true, 2>>(table, "norm_gradient_kernel");
  add_clusters<&channels_cluster_kernel<Channel>, Channel>(table, "channels_cluster_kernel");
}

}  // namespace cosmati::emulator
