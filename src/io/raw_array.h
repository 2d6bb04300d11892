// An array as stored in a file (any element type, byte order and alignment), and conversion to and from
// Tensor.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cosmati/ops/tensor.h"
#include "src/io/element_kind.h"

namespace cosmati::io {

struct RawArray {
  std::string name;  // for messages: the file and, if it contains several arrays, which one
  ElementKind kind = ElementKind::f32;
  bool big_endian = false;
  Layout layout;                      // dense, row-major or column-major
  std::span<std::byte const> bytes;   // exactly layout.size() elements; need not be aligned
  std::shared_ptr<void const> owner;  // keeps the bytes alive; null if the caller does
};

// Returns a tensor with the values, shape and strides of `array`; rank 0 becomes shape (1), since a tensor of
// rank 0 means "not used". Without `as`: natural_type(kind), and an error for a kind that has none. With
// `as`:
// - u16 to f16 or bf16, u8 to e4m3 or e5m2: the elements are bit patterns;
// - between floating-point types: each value is rounded once, to nearest;
// - to or from an integer: every value must be preserved, otherwise an error names the first that is not.
Tensor to_tensor(RawArray const& array, std::optional<DataType> as = std::nullopt);

// Passes the elements of a tensor at `data`, in row-major order of the indices, to `sink` in pieces (in one
// piece if they are already in this order).
void for_each_piece(TensorDescription const& description, void const* data,
                    std::function<void(void const* piece, std::size_t bytes)> const& sink);

}  // namespace cosmati::io
