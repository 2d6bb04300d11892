// The catalogue's kernels by the key of their specification (src/program/program.h).
#pragma once
#include <map>
#include <string>

#include "cosmati/arch/emulator.h"
#include "src/backend/emulator/catalogue.h"
#include "src/program/program.h"

namespace cosmati::emulator {

using KernelTable = std::map<std::string, RunKernel>;

// Adds a kernel<traits> or kernel<traits, phases> that takes Parameters.
template <auto kernel, class Parameters>
void add_kernel(KernelTable& table, char const* entry, std::string traits, int phases = 0) {
  program::KernelSpec const spec{.entry = entry, .traits = std::move(traits), .phases = phases};
  table[spec.key()] = [](Grid grid, int threads, unsigned shared_bytes, void const* parameters,
                         int host_threads) {
    launch_kernel<kernel>(grid, threads, shared_bytes, *static_cast<Parameters const*>(parameters),
                          host_threads);
  };
}

// Each file of the catalogue adds its own kernels.
void add_conversion(KernelTable& table);
void add_depthwise_filter(KernelTable& table);
void add_depthwise_rows(KernelTable& table);
void add_direct(KernelTable& table);
void add_dgrad_small_c(KernelTable& table);
void add_fprop_small_c(KernelTable& table);
void add_wgrad_pointwise(KernelTable& table);
void add_wgrad_small_c(KernelTable& table);
void add_group_windows(KernelTable& table);
void add_image_windows(KernelTable& table);
void add_grouped(KernelTable& table);
void add_fft(KernelTable& table);
void add_wgrad_direct(KernelTable& table);
void add_wgrad_taps(KernelTable& table);
void add_gemm_bytes(KernelTable& table);
void add_gemm_f16(KernelTable& table);
void add_gemm_few_rows(KernelTable& table);
void add_gemm_floats(KernelTable& table);
void add_gemm_group(KernelTable& table);
void add_gemm_mma(KernelTable& table);
void add_gemm_pieces(KernelTable& table);
void add_gemm_tiny(KernelTable& table);
void add_gemm_wgmma(KernelTable& table);
void add_gemm_wmma(KernelTable& table);
void add_networks(KernelTable& table);
void add_packing(KernelTable& table);
void add_primitives(KernelTable& table);
void add_primitives_of_rows(KernelTable& table);
void add_primitives_of_windows(KernelTable& table);
void add_products(KernelTable& table);
void add_products_f32(KernelTable& table);
void add_products_mma(KernelTable& table);
void add_repacking(KernelTable& table);
void add_sliding(KernelTable& table);
void add_unrolling(KernelTable& table);
void add_window_products(KernelTable& table);
void add_winograd(KernelTable& table);

}  // namespace cosmati::emulator
