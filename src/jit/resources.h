// The resources of a compiled kernel, read from its machine code.
#pragma once
#include "src/jit/compile.h"

namespace cosmati::jit {

// Sets registers, local_bytes, static_shared_bytes and constant_bytes of `cubin` from its image, by its
// lowered_name. Returns false, setting nothing, if the image lacks them. The image may be arbitrary bytes.
// (The assembler's -v also prints them, but concurrent assemblies mix up their lines.)
bool read_resources(Cubin& cubin);

}  // namespace cosmati::jit
