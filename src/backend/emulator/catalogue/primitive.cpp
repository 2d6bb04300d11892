// The emulator's element-wise kernels, and the dispatch to all families of primitives.
#include "src/backend/emulator/catalogue/primitive.h"

#include "cosmati/primitive/gather.h"
#include "cosmati/primitive/map.h"
#include "cosmati/primitive/transpose.h"
#include "src/backend/emulator/catalogue/entries.h"
#include "src/backend/emulator/catalogue/primitive_host.h"

namespace cosmati::emulator {
namespace {

using Function = HostFunction<false, primitive_inputs, primitive_outputs>;
template <int width>
using Traits = HostTraits<width, false, 0, Function, Function>;
using One = HostFunction<false, 1, 1>;
using Copy = HostTraits<1, false, 0, One, One>;
using WideCopy = HostTraits<4, false, 0, One, One>;

}  // namespace

void launch_map(plan::PrimitivePass const& pass, PrimitiveParameters const& parameters, int host_threads) {
  bool const transposes = pass.family == plan::PrimitiveFamily::transpose;
  if (transposes && parameters.policy.width == 1)
    launch_pass<&transpose_kernel<Copy>>(pass, parameters, host_threads);
  else if (transposes)
    launch_pass<&transpose_kernel<WideCopy>>(pass, parameters, host_threads);
  else if (pass.family == plan::PrimitiveFamily::gather && parameters.policy.width == 1)
    launch_pass<&gather_kernel<Copy>>(pass, parameters, host_threads);
  else if (pass.family == plan::PrimitiveFamily::gather)
    launch_pass<&gather_kernel<WideCopy>>(pass, parameters, host_threads);
  else if (parameters.policy.width == 1)
    launch_pass<&map_kernel<Traits<1>>>(pass, parameters, host_threads);
  else
    launch_pass<&map_kernel<Traits<4>>>(pass, parameters, host_threads);
}

void launch_group(plan::PrimitivePass const& pass, PrimitiveGroup const& group, int host_threads) {
  Grid const grid{static_cast<int>(pass.blocks), 1, 1};
  if (pass.parameters.policy.width == 1)
    launch_kernel<&map_group_kernel<Traits<1>>>(grid, 256, 0, group, host_threads);
  else
    launch_kernel<&map_group_kernel<Traits<4>>>(grid, 256, 0, group, host_threads);
}

void run_primitive(plan::PrimitiveProgram const& program, plan::PrimitiveRun const& run, int host_threads) {
  for (plan::PrimitivePass const& pass : program.passes) {
    HostFunctions const functions{&pass.function, &pass.last};
    if (!pass.members.empty()) {
      PrimitiveGroup group;
      group.common = pass.parameters;
      plan::bind(pass, run, group);
      group.common.functions = &functions;
      launch_group(pass, group, host_threads);
      continue;
    }
    PrimitiveParameters parameters = pass.parameters;
    plan::bind(pass, run, parameters);
    parameters.functions = &functions;
    switch (pass.family) {
      case plan::PrimitiveFamily::map:
      case plan::PrimitiveFamily::gather:
      case plan::PrimitiveFamily::transpose: launch_map(pass, parameters, host_threads); break;
      case plan::PrimitiveFamily::channels: launch_channels(pass, parameters, host_threads); break;
      case plan::PrimitiveFamily::reduce: launch_reduce(pass, parameters, host_threads); break;
      case plan::PrimitiveFamily::rows: launch_rows(pass, parameters, host_threads); break;
      case plan::PrimitiveFamily::windows:
      case plan::PrimitiveFamily::lrn: launch_windows(pass, parameters, host_threads); break;
    }
  }
}

}  // namespace cosmati::emulator
