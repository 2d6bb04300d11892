// Processors that need not be here, as the backend cpu, and what this one may be taken for.
#pragma once
#include <string>

#include "cosmati/ops/device.h"

namespace cosmati {

// sse2-only, avx2-laptop, avx512-server or 64-core-server; or a file of lines "key = value" as
// processor_text() writes them (# begins a comment). threads = 0: as many as it has cores. For plans: whether
// oneDNN and OpenBLAS are there, and what oneDNN has an implementation for, is that of this machine. Throws
// Error: bad_request for a name that is neither, bad_file with the line and the legal keys.
Device describe_processor(std::string const& name_or_file, int threads = 0);
bool is_processor(std::string const& name);         // one of the four names
std::string processor_text(Device const& device);   // such a file
std::string instruction_set(Device const& device);  // SSE2, AVX2, AVX512, AVX512_VNNI or AVX512_BF16

}  // namespace cosmati
