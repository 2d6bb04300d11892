// Conversion of runs of elements between any data type and float or double, used by all kernels here.
#pragma once
#include <cstddef>
#include <type_traits>

#include "cosmati/core/number.h"

namespace cosmati::cpu {

// out[i] = element i * stride of the array of `type` at `source`, for i in [0, count). A stride of 0 repeats
// an element. Exact in double; in float exact for all types but f64 and s32, which are rounded to nearest.
void read_row(DataType type, void const* source, Index stride, float* out, Index count);
void read_row(DataType type, void const* source, Index stride, double* out, Index count);

// Element i * stride of the array of `type` at `target` = in[i], rounded once (as convert<Number>).
void write_row(float const* in, DataType type, void* target, Index stride, Index count);
void write_row(double const* in, DataType type, void* target, Index stride, Index count);

// Copies bits, in elements of `size` bytes (1, 2, 4 or 8).
void copy_row(int size, void const* source, Index source_stride, void* target, Index target_stride,
              Index count);

template <class Real>
constexpr DataType type_of = std::is_same_v<Real, double> ? DataType::f64 : DataType::f32;

inline std::byte const* element(DataType type, void const* data, Index offset) {
  return static_cast<std::byte const*>(data) + offset * size_of(type);
}
inline std::byte* element(DataType type, void* data, Index offset) {
  return static_cast<std::byte*>(data) + offset * size_of(type);
}

}  // namespace cosmati::cpu
