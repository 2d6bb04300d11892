// The emulator's packing kernels, by element size.
#include "src/backend/emulator/catalogue/conv/convolution_packing.h"

#include "cosmati/conv/packing.h"
#include "src/plan/conv/packing.h"

namespace cosmati::emulator {
namespace {

template <class Bits>
void launch_pack(plan::PackLaunch const& launch, int host_threads) {
  launch_kernel<&pack_kernel<PackTraits<Bits>>>({launch.blocks, launch.blocks_of_runs, 1}, pack_threads, 0,
                                                launch.parameters, host_threads);
}

template <class Bits>
void launch_unpack(plan::UnpackLaunch const& launch, int host_threads) {
  launch_kernel<&unpack_kernel<Bits>>({launch.blocks, 1, 1}, pack_threads, 0, launch.parameters,
                                      host_threads);
}

}  // namespace

ConvolutionProblem::Arguments pack(ConvolutionProblem const& problem, PackRecipe const& recipe,
                                   ConvolutionProblem::Arguments arguments, std::byte* workspace,
                                   int host_threads) {
  for (plan::PackLaunch const& launch : plan::pack_launches(problem, recipe, arguments, workspace)) {
    if (launch.element_bytes == 1) launch_pack<unsigned char>(launch, host_threads);
    if (launch.element_bytes == 2) launch_pack<unsigned short>(launch, host_threads);
    if (launch.element_bytes == 4) launch_pack<unsigned>(launch, host_threads);
  }
  return arguments;
}

void unpack(ConvolutionProblem const& problem, PackRecipe const& recipe,
            ConvolutionProblem::Arguments const& given, std::byte* workspace, int host_threads) {
  if (!plan::packs_result(problem, recipe)) return;
  plan::UnpackLaunch const launch = plan::unpack_launch(problem, recipe, given, workspace);
  if (launch.element_bytes == 1) launch_unpack<unsigned char>(launch, host_threads);
  if (launch.element_bytes == 2) launch_unpack<unsigned short>(launch, host_threads);
  if (launch.element_bytes == 4) launch_unpack<unsigned>(launch, host_threads);
  if (launch.element_bytes == 8) launch_unpack<unsigned long long>(launch, host_threads);
}

}  // namespace cosmati::emulator
