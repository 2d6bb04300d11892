// f32 to 16 bits, many at a time.
#pragma once
#include "cosmati/core/number.h"

namespace cosmati::dcgan {

// to[i] = the bits of from[i] as f16 or bf16, rounded to the nearest, ties to even: what store() writes, but
// the bits of NaN may differ.
void narrow(DataType type, float const* from, Index count, unsigned short* to);

}  // namespace cosmati::dcgan
