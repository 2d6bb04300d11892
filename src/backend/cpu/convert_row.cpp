// Conversions of runs of elements: one loop per pair of data types, compiled for each instruction set.
#include "src/backend/cpu/convert_row.h"

#include "src/backend/cpu/number_bits.h"

namespace cosmati::cpu {
namespace {

template <class Real, class Number>
COSMATI_ALWAYS_INLINE Real widened(Number number) {
  return static_cast<Real>(to_float(number));
}
template <class Real>
COSMATI_ALWAYS_INLINE Real widened(tf32 number) {
  return static_cast<Real>(number.value);
}
template <class Real>
COSMATI_ALWAYS_INLINE Real widened(float number) {
  return static_cast<Real>(number);
}
template <class Real>
COSMATI_ALWAYS_INLINE Real widened(double number) {
  return static_cast<Real>(number);
}
template <class Real>
COSMATI_ALWAYS_INLINE Real widened(s8 number) {
  return static_cast<Real>(number);
}
template <class Real>
COSMATI_ALWAYS_INLINE Real widened(u8 number) {
  return static_cast<Real>(number);
}
template <class Real>
COSMATI_ALWAYS_INLINE Real widened(s32 number) {
  return static_cast<Real>(number);
}

// Rounds a float or a double; a double is rounded to 16- and 8-bit types in a single step, by encode().
template <class Number>
struct Narrow {
  static COSMATI_ALWAYS_INLINE Number from(float value) { return from_float<Number>(value); }
  static Number from(double value) { return convert<Number>(value); }
};
template <>
struct Narrow<double> {
  static COSMATI_ALWAYS_INLINE double from(float value) { return value; }
  static COSMATI_ALWAYS_INLINE double from(double value) { return value; }
};
template <>
struct Narrow<float> {
  static COSMATI_ALWAYS_INLINE float from(float value) { return value; }
  static COSMATI_ALWAYS_INLINE float from(double value) { return static_cast<float>(value); }
};
template <>
struct Narrow<tf32> {
  static COSMATI_ALWAYS_INLINE tf32 from(float value) {
    return __builtin_bit_cast(tf32, tf32_from_float(value));
  }
  static tf32 from(double value) { return tf32(value); }
};
template <>
struct Narrow<s8> {
  static COSMATI_ALWAYS_INLINE s8 from(double value) {
    return static_cast<s8>(static_cast<int>(rounded_integer(value, -128, 127)));
  }
};
template <>
struct Narrow<u8> {
  static COSMATI_ALWAYS_INLINE u8 from(double value) {
    return static_cast<u8>(static_cast<int>(rounded_integer(value, 0, 255)));
  }
};
template <>
struct Narrow<s32> {
  static COSMATI_ALWAYS_INLINE s32 from(double value) {
    return static_cast<s32>(rounded_integer(value, -2147483648.0, 2147483647.0));
  }
};

template <class Number, class Real>
COSMATI_ALWAYS_INLINE void read_loop(void const* source, Index stride, Real* out, Index count) {
  auto const* const in = static_cast<Number const*>(source);
  if (stride == 1) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < count; ++i) out[i] = widened<Real>(in[i]);
  } else {
    for (Index i = 0; i < count; ++i) out[i] = widened<Real>(in[i * stride]);
  }
}

template <class Number, class Real>
COSMATI_ALWAYS_INLINE void write_loop(Real const* in, void* target, Index stride, Index count) {
  auto* const out = static_cast<Number*>(target);
  if (stride == 1) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < count; ++i) out[i] = Narrow<Number>::from(in[i]);
  } else {
    for (Index i = 0; i < count; ++i) out[i * stride] = Narrow<Number>::from(in[i]);
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE void read_any(DataType type, void const* source, Index stride, Real* out, Index count) {
  switch (type) {
    case DataType::f64: return read_loop<f64>(source, stride, out, count);
    case DataType::f32: return read_loop<f32>(source, stride, out, count);
    case DataType::tf32: return read_loop<tf32>(source, stride, out, count);
    case DataType::f16: return read_loop<f16>(source, stride, out, count);
    case DataType::bf16: return read_loop<bf16>(source, stride, out, count);
    case DataType::e4m3: return read_loop<e4m3>(source, stride, out, count);
    case DataType::e5m2: return read_loop<e5m2>(source, stride, out, count);
    case DataType::s8: return read_loop<s8>(source, stride, out, count);
    case DataType::u8: return read_loop<u8>(source, stride, out, count);
    case DataType::s32: return read_loop<s32>(source, stride, out, count);
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE void write_any(Real const* in, DataType type, void* target, Index stride, Index count) {
  switch (type) {
    case DataType::f64: return write_loop<f64>(in, target, stride, count);
    case DataType::f32: return write_loop<f32>(in, target, stride, count);
    case DataType::tf32: return write_loop<tf32>(in, target, stride, count);
    case DataType::f16: return write_loop<f16>(in, target, stride, count);
    case DataType::bf16: return write_loop<bf16>(in, target, stride, count);
    case DataType::e4m3: return write_loop<e4m3>(in, target, stride, count);
    case DataType::e5m2: return write_loop<e5m2>(in, target, stride, count);
    case DataType::s8: return write_loop<s8>(in, target, stride, count);
    case DataType::u8: return write_loop<u8>(in, target, stride, count);
    case DataType::s32: return write_loop<s32>(in, target, stride, count);
  }
}

template <class Bits>
COSMATI_ALWAYS_INLINE void copy_loop(void const* source, Index source_stride, void* target,
                                     Index target_stride, Index count) {
  auto const* const in = static_cast<Bits const*>(source);
  auto* const out = static_cast<Bits*>(target);
  if (source_stride == 1 && target_stride == 1) {
    COSMATI_INDEPENDENT
    for (Index i = 0; i < count; ++i) out[i] = in[i];
  } else {
    for (Index i = 0; i < count; ++i) out[i * target_stride] = in[i * source_stride];
  }
}

COSMATI_ALWAYS_INLINE void copy_any(int size, void const* source, Index source_stride, void* target,
                                    Index target_stride, Index count) {
  switch (size) {
    case 1: return copy_loop<unsigned char>(source, source_stride, target, target_stride, count);
    case 2: return copy_loop<unsigned short>(source, source_stride, target, target_stride, count);
    case 4: return copy_loop<unsigned>(source, source_stride, target, target_stride, count);
    default: return copy_loop<unsigned long long>(source, source_stride, target, target_stride, count);
  }
}

}  // namespace

void read_row(DataType type, void const* source, Index stride, float* out, Index count) {
  Clones<read_any<float>>::call(type, source, stride, out, count);
}
void read_row(DataType type, void const* source, Index stride, double* out, Index count) {
  Clones<read_any<double>>::call(type, source, stride, out, count);
}
void write_row(float const* in, DataType type, void* target, Index stride, Index count) {
  Clones<write_any<float>>::call(in, type, target, stride, count);
}
void write_row(double const* in, DataType type, void* target, Index stride, Index count) {
  Clones<write_any<double>>::call(in, type, target, stride, count);
}
void copy_row(int size, void const* source, Index source_stride, void* target, Index target_stride,
              Index count) {
  Clones<copy_any>::call(size, source, source_stride, target, target_stride, count);
}

}  // namespace cosmati::cpu
