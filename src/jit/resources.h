// What a compiled kernel needs, read from its machine code.
#pragma once
#include "src/jit/compile.h"

namespace cosmati::jit {

// Sets registers, local_bytes, static_shared_bytes and constant_bytes of `cubin` from its image, by its
// lowered_name. False, and nothing is set, if the image does not tell them. The image may be any bytes.
// The assembler's -v says them too, but kernels that are assembled at once mix up their lines.
bool read_resources(Cubin& cubin);

}  // namespace cosmati::jit
