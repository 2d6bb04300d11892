// The instruction sets that oneDNN may use: by its own variable and COSMATI_MAX_CPU_ISA.
#pragma once

namespace cosmati::cpu {

// What ONEDNN_MAX_CPU_ISA, or DNNL_MAX_CPU_ISA, leaves of oneDNN's instructions.
struct OnednnLimit {
  bool avx = true, avx512 = true, vnni = true, bf16 = true, amx = true;
};
OnednnLimit onednn_limit();

// What ONEDNN_MAX_CPU_ISA must be so that oneDNN keeps to COSMATI_MAX_CPU_ISA as well; null: it does already.
char const* onednn_isa();

}  // namespace cosmati::cpu
