// Pooling and local response normalisation in the emulator.
#include "cosmati/primitive/lrn.h"
#include "cosmati/primitive/windows.h"
#include "src/backend/emulator/primitive_host.h"

namespace cosmati::emulator {
namespace {

using Function = HostFunction<false, 2, 1>;
template <int width>
using Traits = HostTraits<width, false, 0, Function, Function>;

}  // namespace

void launch_windows(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters,
                    int host_threads) {
  bool const wide = parameters.policy.width > 1;
  if (pass.family == plan::PrimitiveFamily::lrn)
    wide ? launch_pass<&lrn_kernel<Traits<4>>>(pass, parameters, host_threads)
         : launch_pass<&lrn_kernel<Traits<1>>>(pass, parameters, host_threads);
  else
    wide ? launch_pass<&window_kernel<Traits<4>>>(pass, parameters, host_threads)
         : launch_pass<&window_kernel<Traits<1>>>(pass, parameters, host_threads);
}

}  // namespace cosmati::emulator
