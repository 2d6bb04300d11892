// The warp_specialized kernels of the emulator: their parameters and their catalogue.
#pragma once
#include <memory>

#include "cosmati/arch/emulator_async.h"
#include "cosmati/gemm/tensor_source.h"
#include "cosmati/tile/run.h"
#include "src/backend/emulator/catalogue/gemm/gemm_host.h"

namespace cosmati::emulator {

using WarpgroupGemmParameters =
    GemmParameters<TensorArguments, TensorArguments, HostEpilogue::Arguments, HostDestination::Arguments>;

struct WarpgroupEntry {
  void (*launch)(int blocks, WarpgroupGemmParameters const& parameters, int host_threads) = nullptr;
};
// Whose operands both are brought by threads.
struct ByThreadsEntry {
  void (*launch)(int blocks, HostGemmParameters const& parameters, int host_threads) = nullptr;
};

// The kernel for types in plan::wgmma_takes() and majors that the instruction supports.
WarpgroupEntry find_wgmma(DataType a, DataType b, Along along_a, Along along_b);

// Available for some types and majors only.
ByThreadsEntry find_wgmma_by_threads(DataType type, OperandAccess const& a, OperandAccess const& b);
// The bf16 kernel for plans with stream-K.
WarpgroupEntry find_wgmma_stream_k(Along along_a, Along along_b);

std::unique_ptr<Kernel<GemmProblem>> prepare_warp_specialized(Plan<GemmProblem> const& plan);

}  // namespace cosmati::emulator
