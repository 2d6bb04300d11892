// Descriptions of processors for the backend cpu, which need not be present.
#pragma once
#include <string>

#include "cosmati/ops/device.h"

namespace cosmati {

// sse2-only, avx2-laptop, avx512-server or 64-core-server; or a file of lines "key = value" as written by
// processor_text() (# begins a comment). Caches missing from a file are unknown. `threads` = 0 selects one
// thread per core. Availability of oneDNN and OpenBLAS is taken from this machine, and so is whether oneDNN
// implements given types and layouts: its candidates create primitives to find out (violates_build in
// src/backend/cpu/onednn/recipe.h), for the processor on which it runs. Requirements known to depend on the
// instruction set are checked against the Device first: 8-bit integers, bf16, tiles with packed operands.
// Throws Error(bad_request) for an unknown name, and Error(bad_file) with the line and the valid keys.
Device describe_processor(std::string const& name_or_file, int threads = 0);
bool is_processor(std::string const& name);         // one of the four names
std::string processor_text(Device const& device);   // the contents of such a file
std::string instruction_set(Device const& device);  // SSE2, AVX2, AVX512, AVX512_VNNI or AVX512_BF16
// "AVX2, 8 cores, 32 KiB L1d, 512 KiB L2, 16 MiB L3", without unknown caches.
std::string processor_summary(Device const& device);

}  // namespace cosmati
