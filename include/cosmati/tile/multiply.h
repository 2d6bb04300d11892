// What multiplies: a field of the policy, and what the accumulators are specialised for.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

enum class Multiply : unsigned char {
  fma,    // one fused multiply-add a product, in the accumulator's type: f32, f64 or s32
  half2,  // two f16 fused multiply-adds an instruction, f16 accumulators
  dp4a,   // four 8-bit products an instruction, s32 accumulators
};

COSMATI_CONSTEXPR char const* name_of(Multiply multiply) {
  return multiply == Multiply::fma ? "fma" : multiply == Multiply::half2 ? "half2" : "dp4a";
}

// Depths that are multiplied at once, and lie together in shared memory.
COSMATI_CONSTEXPR int pack_depth_of(Multiply multiply) { return multiply == Multiply::dp4a ? 4 : 1; }

}  // namespace cosmati
