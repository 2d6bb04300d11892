// How products of f32 factors are computed.
#pragma once
#include "cosmati/core/cxx20.h"
#include "cosmati/core/number.h"

namespace cosmati {

// exact: factors are multiplied as they are. bf16x3, bf16x6, bf16x9: a plan may split f32 factors into up to
// three bf16 numbers, multiply the three, six or nine largest pairs on tensor cores, and add the products in
// f32 (docs/decisions/0041-bf16-products.md). This is a permission, not a requirement: kernels that multiply
// f32 exactly remain candidates.
enum class ComputeMode : unsigned char { exact, bf16x3, bf16x6, bf16x9 };
inline constexpr int compute_mode_count = 4;

constexpr char const* name_of(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::bf16x3: return "bf16x3";
    case ComputeMode::bf16x6: return "bf16x6";
    case ComputeMode::bf16x9: return "bf16x9";
    case ComputeMode::exact: break;
  }
  return "exact";
}

// Products of bf16 for each product of f32; 1 if factors are not split.
constexpr int products_of(ComputeMode mode) {
  constexpr int products[compute_mode_count] = {1, 3, 6, 9};
  return products[static_cast<int>(mode)];
}

// The largest relative error of a product computed from bf16 products, for factors of at least 2^-110
// (derived in the decision). bf16x9 is exact.
constexpr double largest_product_error(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::bf16x3: return 3.1 * power_of_two(-16);
    case ComputeMode::bf16x6: return 2.1 * power_of_two(-24);
    default: return 0;
  }
}

// The standard deviation of that error, for mantissas that are distributed logarithmically. The relative
// error of a rounding to bf16 is 0.42 of its bound of 2^-8; the error of bf16x3 is a sum of three products of
// two such errors, that of bf16x6 of two products of three.
constexpr double expected_product_error(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::bf16x3: return 0.29 * power_of_two(-16);
    case ComputeMode::bf16x6: return 0.096 * power_of_two(-24);
    default: return 0;
  }
}

}  // namespace cosmati
