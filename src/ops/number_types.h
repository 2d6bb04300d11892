// The table of data types: the facts that files, other libraries and error bounds need.
#pragma once
#include "cosmati/core/number.h"

namespace cosmati {

// Which tensors have the type: those of every operation, only factors of products, or only sums of products.
enum class TypeUse : unsigned char { every_operation, factors, sums };

struct NumberType {
  DataType type;
  int mantissa_bits;  // stored bits; of an integer, all but the sign
  char const*
      numpy;  // the element type in a .npy file; where NumPy has none, the integer that holds the bits
  char const* safetensors;  // its name in a safetensors file
  int cuda;                 // cudaDataType
  TypeUse use = TypeUse::every_operation;
};

// In the order of DataType. Outside kernels, tf32 is stored as f32.
inline constexpr NumberType number_types[] = {
    {DataType::f64, 52, "<f8", "F64", 1},
    {DataType::f32, 23, "<f4", "F32", 0},
    {DataType::tf32, tf32_format.mantissa_bits, "<f4", "F32", 0, TypeUse::factors},
    {DataType::f16, f16_format.mantissa_bits, "<f2", "F16", 2},
    {DataType::bf16, bf16_format.mantissa_bits, "<u2", "BF16", 14},
    {DataType::e4m3, e4m3_format.mantissa_bits, "|u1", "F8_E4M3", 28},
    {DataType::e5m2, e5m2_format.mantissa_bits, "|u1", "F8_E5M2", 29},
    {DataType::s8, 7, "|i1", "I8", 3, TypeUse::factors},
    {DataType::u8, 8, "|u1", "U8", 8, TypeUse::factors},
    {DataType::s32, 31, "<i4", "I32", 10, TypeUse::sums},
};

// Names of the types in NumPy, PyTorch, ONNX and CUTLASS.
struct TypeAlias {
  char const* name;
  DataType type;
};
inline constexpr TypeAlias type_aliases[] = {
    {"float64", DataType::f64},        {"double", DataType::f64},    {"fp64", DataType::f64},
    {"float32", DataType::f32},        {"float", DataType::f32},     {"single", DataType::f32},
    {"fp32", DataType::f32},           {"tfloat32", DataType::tf32}, {"float16", DataType::f16},
    {"half", DataType::f16},           {"fp16", DataType::f16},      {"bfloat16", DataType::bf16},
    {"bfloat", DataType::bf16},        {"fp8", DataType::e4m3},      {"float8_e4m3", DataType::e4m3},
    {"float8_e4m3fn", DataType::e4m3}, {"fp8_e4m3", DataType::e4m3}, {"float8_e5m2", DataType::e5m2},
    {"fp8_e5m2", DataType::e5m2},      {"int8", DataType::s8},       {"uint8", DataType::u8},
    {"int32", DataType::s32},
};

constexpr NumberType const& number_type(DataType type) { return number_types[static_cast<int>(type)]; }

// 8-bit integers and 8-bit floating-point numbers.
constexpr bool is_int8(DataType type) { return is_integer(type) && size_of(type) == 1; }
constexpr bool is_float8(DataType type) { return !is_integer(type) && size_of(type) == 1; }

// The largest relative error of rounding to nearest in this type; 0 for integers.
constexpr double unit_roundoff(DataType type) {
  return is_integer(type) ? 0 : power_of_two(-1 - number_type(type).mantissa_bits);
}

namespace checks {
constexpr bool rows_are_in_order() {
  for (int i = 0; i < data_type_count; ++i)
    if (number_types[i].type != static_cast<DataType>(i)) return false;
  return sizeof number_types / sizeof number_types[0] == data_type_count;
}
static_assert(rows_are_in_order(), "number_types has a row for each DataType, in its order");
}  // namespace checks

}  // namespace cosmati
