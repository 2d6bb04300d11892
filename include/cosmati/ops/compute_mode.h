// How matrix products may be computed to be faster.
#pragma once
#include "cosmati/core/cxx20.h"
#include "cosmati/core/number.h"

namespace cosmati {

// exact: factors are multiplied as they are. bf16x3, bf16x6, bf16x9: a plan may split f32 factors into up to
// three bf16 numbers, multiply the three, six or nine largest pairs on tensor cores, and add the products in
// f32 (docs/decisions/0041-bf16-products.md); tf32x3: into two tf32 numbers, of which three pairs are
// multiplied. fast_accumulation: products of 8-bit floats are summed as Hopper's tensor cores do, which keep
// about 14 bits; otherwise they sum 128 products at a time, and these sums are added in f32. Each is a
// permission, not a requirement: kernels that compute exactly remain candidates.
enum class ComputeMode : unsigned char { exact, bf16x3, bf16x6, bf16x9, tf32x3, fast_accumulation };
inline constexpr int compute_mode_count = 6;

constexpr char const* name_of(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::bf16x3: return "bf16x3";
    case ComputeMode::bf16x6: return "bf16x6";
    case ComputeMode::bf16x9: return "bf16x9";
    case ComputeMode::tf32x3: return "tf32x3";
    case ComputeMode::fast_accumulation: return "fast_accumulation";
    case ComputeMode::exact: break;
  }
  return "exact";
}

constexpr bool splits_factors(ComputeMode mode) {
  return mode != ComputeMode::exact && mode != ComputeMode::fast_accumulation;
}

// Products of pieces for each product of f32; 1 if factors are not split.
constexpr int products_of(ComputeMode mode) {
  constexpr int products[compute_mode_count] = {1, 3, 6, 9, 3, 1};
  return products[static_cast<int>(mode)];
}

// The type of the pieces of a factor; f32 if factors are not split.
constexpr DataType piece_type(ComputeMode mode) {
  return !splits_factors(mode)         ? DataType::f32
         : mode == ComputeMode::tf32x3 ? DataType::tf32
                                       : DataType::bf16;
}

// The largest relative error of a product computed from products of pieces, for factors of at least 2^-110
// (derived in the decision). bf16x9 is exact.
constexpr double largest_product_error(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::bf16x3: return 3.1 * power_of_two(-16);
    case ComputeMode::bf16x6: return 2.1 * power_of_two(-24);
    case ComputeMode::tf32x3: return 2.1 * power_of_two(-22);
    default: return 0;
  }
}

// The standard deviation of that error, for mantissas that are distributed logarithmically. The relative
// error of a rounding to bf16 is 0.42 of its bound of 2^-8; the error of bf16x3 is a sum of three products of
// two such errors, that of bf16x6 of two products of three. Two tf32 pieces contain all 24 bits of a factor
// or all but the last.
constexpr double expected_product_error(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::bf16x3: return 0.29 * power_of_two(-16);
    case ComputeMode::bf16x6: return 0.096 * power_of_two(-24);
    case ComputeMode::tf32x3: return 0.31 * power_of_two(-22);
    default: return 0;
  }
}

}  // namespace cosmati
