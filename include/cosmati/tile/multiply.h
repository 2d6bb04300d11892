// The multiply instruction: a field of the policy, for which the accumulators are specialized.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

enum class Multiply : unsigned char {
  fma,    // one fused multiply-add per product, in the accumulator's type: f32, f64 or s32
  half2,  // two f16 fused multiply-adds per instruction, f16 accumulators
  dp4a,   // four 8-bit products per instruction, s32 accumulators
  wmma,   // tensor cores by fragments of unspecified layout: f16 with f32 or f16, bf16 and tf32 with f32, s8
          // or u8 with s32, f64 with f64 accumulators; sm_75
  mma,    // tensor cores by mma.sync: f16 with f32 or f16, bf16, tf32 and fp8 with f32, f64 with f64, 8-bit
          // integers with s32 accumulators; sm_80
  wgmma,  // tensor cores by wgmma: warpgroups that read both operands from shared memory; sm_90a
};

COSMATI_CONSTEXPR char const* name_of(Multiply multiply) {
  constexpr char const* names[] = {"fma", "half2", "dp4a", "wmma", "mma", "wgmma"};
  return names[static_cast<int>(multiply)];
}

// Returns the number of depths that one instruction multiplies, for elements of this many bytes.
COSMATI_CONSTEXPR int pack_depth_of(Multiply multiply, int element_bytes = 1) {
  if (multiply == Multiply::wmma) return element_bytes == 8 ? 4 : element_bytes == 4 ? 8 : 16;
  return multiply == Multiply::dp4a                                 ? 4
         : multiply == Multiply::mma || multiply == Multiply::wgmma ? 32 / element_bytes
                                                                    : 1;
}

}  // namespace cosmati
