// The instruction sets that oneDNN may use, by its own variable and COSMATI_MAX_CPU_ISA.
#pragma once

namespace cosmati::cpu {

// The instruction sets that ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA permits.
struct OnednnLimit {
  bool avx = true, avx512 = true, vnni = true, bf16 = true, amx = true;
};
OnednnLimit onednn_limit();

// Returns the value of ONEDNN_MAX_CPU_ISA with which oneDNN respects COSMATI_MAX_CPU_ISA; null if it already
// does.
char const* onednn_isa();

}  // namespace cosmati::cpu
