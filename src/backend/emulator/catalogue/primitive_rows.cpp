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

void launch_norms(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads) {
  PrimitivePolicy const& policy = parameters.policy;
  if ((policy.operation & (NormOperation::sums_weight | NormOperation::sums_bias)) != 0)
    launch_pass<&norm_gradient_kernel<Rows<4, true, 2>>>(pass, parameters, host_threads);
  else if (policy.width == 1)
    launch_pass<&norm_row_kernel<Rows<1, true, 0>>>(pass, parameters, host_threads);
  else if (policy.cached == 0)
    launch_pass<&norm_row_kernel<Rows<4, true, 0>>>(pass, parameters, host_threads);
  else
    launch_pass<&norm_row_kernel<Rows<4, true, 2>>>(pass, parameters, host_threads);
}

}  // namespace

void launch_channels(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters,
                     int host_threads) {
  launch_pass_clusters<&channels_cluster_kernel<Channel>>(pass, parameters, host_threads);
}

void launch_reduce(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads) {
  PrimitivePolicy const& policy = parameters.policy;
  if (policy.width == 1)  // with single elements, both directions use the same kernel
    launch_pass<&reduce_kernel<Reduce<1, true>>>(pass, parameters, host_threads);
  else if (policy.runs_of_terms)
    launch_pass<&reduce_kernel<Reduce<4, true>>>(pass, parameters, host_threads);
  else
    launch_pass<&reduce_kernel<Reduce<4, false>>>(pass, parameters, host_threads);
}

void launch_rows(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads) {
  PrimitivePolicy const& policy = parameters.policy;
  if ((policy.operation & NormOperation::norm) != 0)
    launch_norms(pass, parameters, host_threads);
  else if (policy.packed && policy.cluster > 1)
    launch_pass_clusters<&row_cluster_kernel<Rows<4, true, 2, 2, true>>>(pass, parameters, host_threads);
  else if (policy.packed)
    launch_pass<&row_kernel<Rows<4, true, 2, 1, true>>>(pass, parameters, host_threads);
  else if (policy.cluster > 1)
    launch_pass_clusters<&row_cluster_kernel<Rows<4, true, 2, 2>>>(pass, parameters, host_threads);
  else if (policy.width == 1)
    launch_pass<&row_kernel<Rows<1, true, 0>>>(pass, parameters, host_threads);
  else if (!policy.runs_of_terms)
    launch_pass<&row_kernel<Rows<4, false, 0>>>(pass, parameters, host_threads);
  else if (policy.cached == 0)
    launch_pass<&row_kernel<Rows<4, true, 0>>>(pass, parameters, host_threads);
  else
    launch_pass<&row_kernel<Rows<4, true, 2>>>(pass, parameters, host_threads);
}

}  // namespace cosmati::emulator
