// Tensor descriptions (type and layout), and tensors that own host memory.
#pragma once
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>

#include "cosmati/core/number.h"
#include "cosmati/core/shape.h"
#include "cosmati/ops/error.h"

namespace cosmati {

// The description of a tensor in a problem: plain data without a pointer.
struct TensorDescription {
  DataType type = DataType::f32;
  Layout layout;  // rank 0 with `present` false: the tensor is not used
  // Guaranteed alignment of the pointer in bytes, a power of two, if larger than the type's size. On a GPU it
  // determines the width of loads.
  int alignment = default_alignment;

  static constexpr int default_alignment = 16;

  bool present() const { return layout.rank() > 0; }
  Shape const& shape() const { return layout.shape; }
  Index extent(int dimension) const { return layout.extent(dimension); }
  // Bytes from the start of the first element to the end of the last.
  Index bytes() const { return layout.span() * size_of(type); }
  // Comparison ignores the alignment.
  friend bool operator==(TensorDescription const& x, TensorDescription const& y) {
    return x.type == y.type && x.layout == y.layout;
  }
};

// In describe(type, {2, 3}) the braces denote a shape, never a layout.
template <std::same_as<Layout> AnyLayout>
TensorDescription describe(DataType type, AnyLayout const& layout) {
  return {type, layout};
}
inline TensorDescription describe(DataType type, Shape shape) { return {type, row_major(shape)}; }

// "f32 (64, 1, 28, 28)", with strides where they are not row-major, and the alignment where it is not 16.
std::string to_string(TensorDescription const& description);
std::string to_string(Shape const& shape);

DataType parse_data_type(std::string const& name);  // accepts aliases such as float32; throws
                                                    // Error(bad_request) listing the valid names

// Number of elements; throws Error if an extent is negative or the size exceeds 2^62 bytes.
Index checked_size(Shape const& shape, DataType type);

// description.bytes(), checked: throws Error if an extent or a stride is negative or the size exceeds 2^62
// bytes.
Index checked_bytes(TensorDescription const& description);

// A tensor that owns its memory (host memory, 64-byte aligned). Movable, not copyable.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(TensorDescription description);  // contents undefined
  Tensor(DataType type, Shape shape) : Tensor(describe(type, shape)) {}

  TensorDescription const& description() const { return description_; }
  DataType type() const { return description_.type; }
  Layout const& layout() const { return description_.layout; }
  Shape const& shape() const { return description_.layout.shape; }
  Index size() const { return description_.layout.size(); }
  std::size_t bytes() const { return bytes_; }
  void* data() { return memory_.get(); }
  void const* data() const { return memory_.get(); }
  template <class Element>
  Element* as() {
    return static_cast<Element*>(data());
  }
  template <class Element>
  Element const* as() const {
    return static_cast<Element const*>(data());
  }

  double get(Index linear) const { return load(type(), data(), layout().offset_of_linear(linear)); }
  void set(Index linear, double value) { store(type(), data(), layout().offset_of_linear(linear), value); }
  void fill(double value);  // every element

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  TensorDescription description_;
  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte[], Free> memory_;
};

// Returns a copy of `source` with the type and layout of `description`. Throws Error(bad_request) if the
// shapes differ.
Tensor copy(Tensor const& source, TensorDescription description);

}  // namespace cosmati
