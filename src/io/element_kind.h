// The element types of files: the library's data types and those that only files have.
#pragma once
#include <optional>

#include "src/ops/number_types.h"

namespace cosmati::io {

enum class ElementKind : unsigned char {
  boolean,
  s8,
  u8,
  s16,
  u16,
  s32,
  u32,
  s64,
  u64,
  f16,
  bf16,
  e4m3,
  e5m2,
  f32,
  f64
};

struct ElementFacts {
  ElementKind kind;
  char const* name;
  int bytes;
  char const* numpy;  // little-endian
  char const* safetensors;
  std::optional<DataType> type;  // data type with the same values and bits
};

constexpr ElementFacts element_of(ElementKind kind, DataType type) {
  NumberType const& facts = number_type(type);
  return {kind, name_of(type), size_of(type), facts.numpy, facts.safetensors, type};
}

// Integers follow the types that .npy files store as the bits of an integer.
inline constexpr ElementFacts element_kinds[] = {
    element_of(ElementKind::f64, DataType::f64),          element_of(ElementKind::f32, DataType::f32),
    element_of(ElementKind::f16, DataType::f16),          element_of(ElementKind::bf16, DataType::bf16),
    element_of(ElementKind::e4m3, DataType::e4m3),        element_of(ElementKind::e5m2, DataType::e5m2),
    {ElementKind::s64, "s64", 8, "<i8", "I64", {}},       element_of(ElementKind::s32, DataType::s32),
    {ElementKind::s16, "s16", 2, "<i2", "I16", {}},       element_of(ElementKind::s8, DataType::s8),
    {ElementKind::u64, "u64", 8, "<u8", "U64", {}},       {ElementKind::u32, "u32", 4, "<u4", "U32", {}},
    {ElementKind::u16, "u16", 2, "<u2", "U16", {}},       element_of(ElementKind::u8, DataType::u8),
    {ElementKind::boolean, "bool", 1, "|b1", "BOOL", {}},
};

constexpr ElementFacts const& facts_of(ElementKind kind) {
  ElementFacts const* found = element_kinds;
  while (found->kind != kind) ++found;
  return *found;
}

constexpr char const* name_of(ElementKind kind) { return facts_of(kind).name; }
constexpr int size_of(ElementKind kind) { return facts_of(kind).bytes; }

// The data type with the same values and bits; u8 for booleans; none for s16, u16, u32, s64 and u64.
constexpr std::optional<DataType> natural_type(ElementKind kind) {
  return kind == ElementKind::boolean ? DataType::u8 : facts_of(kind).type;
}

// How an element of `type` is stored in a file; a tf32 is stored as f32.
constexpr ElementKind kind_of(DataType type) {
  ElementFacts const* found = element_kinds;
  while (found->type != (type == DataType::tf32 ? DataType::f32 : type)) ++found;
  return found->kind;
}

// Whether elements of `kind` are the bits of floating-point numbers if a tensor of `type` is requested.
constexpr bool is_pattern(ElementKind kind, DataType type) {
  return (kind == ElementKind::u16 || kind == ElementKind::u8) && !is_integer(type) &&
         size_of(type) == size_of(kind);
}

}  // namespace cosmati::io
