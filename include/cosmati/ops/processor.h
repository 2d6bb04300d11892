// Processors that need not be here, as the backend cpu, and what this one may be taken for.
#pragma once
#include <string>

#include "cosmati/ops/device.h"

namespace cosmati {

// sse2-only, avx2-laptop, avx512-server or 64-core-server; or a file of lines "key = value" as
// processor_text() writes them (# begins a comment). Caches that a file does not tell are not known. threads
// = 0: as many as it has cores. For plans: whether oneDNN and OpenBLAS are there is that of this machine, and
// so is whether oneDNN has an implementation for given types and layouts: its candidates make their
// primitives to decide that (violates_build in src/backend/cpu/onednn/recipe.h), and oneDNN makes them for
// the processor on which it runs. What is known to depend on the instruction set is asked of the Device
// before: 8-bit integers, bf16, tiles with operands that are packed. Throws Error: bad_request for a name
// that is neither, bad_file with the line and the legal keys.
Device describe_processor(std::string const& name_or_file, int threads = 0);
bool is_processor(std::string const& name);         // one of the four names
std::string processor_text(Device const& device);   // such a file
std::string instruction_set(Device const& device);  // SSE2, AVX2, AVX512, AVX512_VNNI or AVX512_BF16
// "AVX2, 8 cores, 32 KiB L1d, 512 KiB L2, 16 MiB L3", without caches that are not known.
std::string processor_summary(Device const& device);

}  // namespace cosmati
