// Converts between the elements of files and tensors.
#include "src/io/raw_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/io/bad_file.h"

namespace cosmati::io {
namespace {

template <class Number>
Number load_element(std::byte const* at, bool swap) {
  std::byte bytes[sizeof(Number)];
  std::memcpy(bytes, at, sizeof(Number));
  if (swap) std::reverse(bytes, bytes + sizeof(Number));
  Number number;
  std::memcpy(&number, bytes, sizeof(Number));
  return number;
}

// An element as a double; a 64-bit integer that a double cannot represent also as text for the error message.
struct Value {
  double value;
  std::string inexact;
};

template <class Integer>
Value exact_value(Integer integer) {
  auto const value = static_cast<double>(integer);
  // 2^63 and 2^64 result from rounding up, and must not be cast back.
  bool const in_range = value < std::ldexp(1.0, std::is_signed_v<Integer> ? 63 : 64);
  if (in_range && static_cast<Integer>(value) == integer) return {value, {}};
  return {value, fmt::format("{}", integer)};
}

Value load_value(ElementKind kind, std::byte const* at, bool swap) {
  switch (kind) {
    case ElementKind::boolean: return {*at != std::byte{0} ? 1.0 : 0.0, {}};
    case ElementKind::s8: return {static_cast<double>(load_element<s8>(at, swap)), {}};
    case ElementKind::u8: return {static_cast<double>(load_element<u8>(at, swap)), {}};
    case ElementKind::s16: return {static_cast<double>(load_element<std::int16_t>(at, swap)), {}};
    case ElementKind::u16: return {static_cast<double>(load_element<std::uint16_t>(at, swap)), {}};
    case ElementKind::s32: return {static_cast<double>(load_element<std::int32_t>(at, swap)), {}};
    case ElementKind::u32: return {static_cast<double>(load_element<std::uint32_t>(at, swap)), {}};
    case ElementKind::s64: return exact_value(load_element<std::int64_t>(at, swap));
    case ElementKind::u64: return exact_value(load_element<std::uint64_t>(at, swap));
    case ElementKind::f16: return {static_cast<double>(load_element<f16>(at, swap)), {}};
    case ElementKind::bf16: return {static_cast<double>(load_element<bf16>(at, swap)), {}};
    case ElementKind::e4m3: return {static_cast<double>(load_element<e4m3>(at, swap)), {}};
    case ElementKind::e5m2: return {static_cast<double>(load_element<e5m2>(at, swap)), {}};
    case ElementKind::f32: return {static_cast<double>(load_element<f32>(at, swap)), {}};
    case ElementKind::f64: break;
  }
  return {load_element<f64>(at, swap), {}};
}

bool holds_integers(ElementKind kind) { return kind <= ElementKind::u64; }

// The indices of the element at `position` in a dense layout.
std::string indices_of(Layout const& layout, Index position) {
  Shape at = layout.shape;
  for (int d = 0; d < at.rank; ++d) at[d] = position / layout.stride[d] % layout.extent(d);
  return to_string(at);
}

[[noreturn]] void refuse_value(RawArray const& array, Index position, Value const& value, DataType type) {
  std::string text = value.inexact;
  if (text.empty())
    text = holds_integers(array.kind) ? fmt::format("{:.0f}", value.value) : fmt::format("{}", value.value);
  bad_file(array.name, fmt::format("the value {} at {} cannot be represented exactly in {}", text,
                                   indices_of(array.layout, position), name_of(type)));
}

void copy_bits(RawArray const& array, Tensor& tensor) {
  std::size_t const step = static_cast<std::size_t>(size_of(array.kind));
  auto* const out = static_cast<std::byte*>(tensor.data());
  if (!array.bytes.empty()) std::memcpy(out, array.bytes.data(), array.bytes.size());
  if (!array.big_endian || step == 1) return;
  for (std::size_t at = 0; at < array.bytes.size(); at += step) std::reverse(out + at, out + at + step);
}

void convert_values(RawArray const& array, Tensor& tensor) {
  bool const must_survive = holds_integers(array.kind) || is_integer(tensor.type());
  int const step = size_of(array.kind);
  Index const size = array.layout.size();
  for (Index i = 0; i < size; ++i) {
    Value const value = load_value(array.kind, array.bytes.data() + i * step, array.big_endian);
    if (!value.inexact.empty()) refuse_value(array, i, value, tensor.type());
    store(tensor.type(), tensor.data(), i, value.value);
    if (must_survive && !(load(tensor.type(), tensor.data(), i) == value.value))
      refuse_value(array, i, value, tensor.type());
  }
}

void copy_run(std::byte const* from, Index step, Index count, int element_bytes, std::byte* to) {
  auto const bytes = static_cast<std::size_t>(element_bytes);
  for (Index i = 0; i < count; ++i)
    std::memcpy(to + i * element_bytes, from + i * step * element_bytes, bytes);
}

}  // namespace

Tensor to_tensor(RawArray const& array, std::optional<DataType> as) {
  std::optional<DataType> const natural = natural_type(array.kind);
  if (!as && !natural)
    bad_file(array.name,
             fmt::format("its elements are {}, which has no corresponding data type; specify the type to "
                         "convert them to, e.g. s32{}",
                         name_of(array.kind),
                         array.kind == ElementKind::u16 ? ", or bf16 or f16 for bit patterns" : ""));
  DataType const type = as ? *as : *natural;
  Tensor tensor(describe(type, array.layout.rank() == 0 ? row_major({1}) : array.layout));
  bool const same = natural == type && array.kind != ElementKind::boolean;
  if (same || is_pattern(array.kind, type))
    copy_bits(array, tensor);
  else
    convert_values(array, tensor);
  return tensor;
}

void for_each_piece(TensorDescription const& description, void const* data,
                    std::function<void(void const* piece, std::size_t bytes)> const& sink) {
  Layout const& layout = description.layout;
  if (layout.size() == 0) return;
  if (layout.is_row_major()) return sink(data, static_cast<std::size_t>(description.bytes()));
  int const element_bytes = size_of(description.type);
  auto const* const first = static_cast<std::byte const*>(data);
  int const last = layout.rank() - 1;
  constexpr Index longest_piece = 8192;
  std::vector<std::byte> piece(static_cast<std::size_t>(longest_piece * element_bytes));
  Index held = 0;
  auto const flush = [&] { sink(piece.data(), static_cast<std::size_t>(held * element_bytes)), held = 0; };
  Index at[max_rank] = {};
  int d = 0;
  do {
    Index const row = layout.offset_of(at);
    for (Index i = 0; i < layout.extent(last);) {
      Index const count = std::min(layout.extent(last) - i, longest_piece - held);
      copy_run(first + (row + i * layout.stride[last]) * element_bytes, layout.stride[last], count,
               element_bytes, piece.data() + held * element_bytes);
      i += count;
      held += count;
      if (held == longest_piece) flush();
    }
    for (d = last - 1; d >= 0 && ++at[d] == layout.extent(d); --d) at[d] = 0;
  } while (d >= 0);
  if (held > 0) flush();
}

}  // namespace cosmati::io
