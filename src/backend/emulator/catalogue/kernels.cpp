// The table of kernels, and the kernel that converts operands.
#include "src/backend/emulator/catalogue/kernels.h"

#include "src/backend/emulator/catalogue/entries.h"
#include "src/plan/gemm/program/passes.h"

namespace cosmati::emulator {

void add_conversion(KernelTable& table) {
  table[program::KernelSpec{.entry = "widen_kernel", .traits = "all types"}.key()] =
      [](Grid, int, unsigned, void const* parameters, int) {
        auto const& p = *static_cast<plan::WidenParameters const*>(parameters);
        for (Index i = 0; i < p.count; ++i) store(p.to_type, p.to, i, load(p.from_type, p.from, i));
      };
}

RunKernel find_kernel(std::string const& key) {
  static KernelTable const table = [] {
    KernelTable made;
    for (auto* const add : {&add_conversion,
                            &add_depthwise_filter,
                            &add_depthwise_rows,
                            &add_direct,
                            &add_dgrad_small_c,
                            &add_fprop_small_c,
                            &add_wgrad_pointwise,
                            &add_wgrad_small_c,
                            &add_group_windows,
                            &add_image_windows,
                            &add_grouped,
                            &add_fft,
                            &add_wgrad_direct,
                            &add_gemm_bytes,
                            &add_gemm_f16,
                            &add_gemm_few_rows,
                            &add_gemm_floats,
                            &add_gemm_group,
                            &add_gemm_mma,
                            &add_gemm_pieces,
                            &add_gemm_tiny,
                            &add_gemm_wgmma,
                            &add_gemm_wmma,
                            &add_networks,
                            &add_packing,
                            &add_products,
                            &add_products_f32,
                            &add_products_mma,
                            &add_repacking,
                            &add_sliding,
                            &add_unrolling,
                            &add_window_products,
                            &add_winograd,
                            &add_wgrad_taps,
                            &add_primitives,
                            &add_primitives_of_rows,
                            &add_primitives_of_windows})
      add(made);
    return made;
  }();
  auto const found = table.find(key);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace cosmati::emulator
