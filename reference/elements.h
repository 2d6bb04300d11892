// Element access for the reference: x(n, c, h, w) is a double for any type and strides.
#pragma once
#include <type_traits>

#include "cosmati/ops/tensor.h"

namespace cosmati::reference {

// A multi-index, created by for_each_index.
struct Position {
  Index at[max_rank] = {};
  Index operator[](int dimension) const { return at[dimension]; }
  Index& operator[](int dimension) { return at[dimension]; }
};

// The elements of an input.
class Input {
 public:
  Input(TensorDescription const& description, void const* data)
      : type_(description.type), layout_(description.layout), data_(data) {}

  Shape const& shape() const { return layout_.shape; }
  Index extent(int dimension) const { return layout_.extent(dimension); }

  template <class... Indices>
  requires(std::is_integral_v<Indices>&&...) double operator()(Indices... at) const {
    return load(type_, data_, layout_.offset(at...));
  }
  double operator()(Position const& position) const {
    return load(type_, data_, layout_.offset_of(position.at));
  }
  template <class... Indices>
  long long integer(Indices... at) const {
    return static_cast<long long>((*this)(at...));
  }

 private:
  DataType type_;
  Layout layout_;
  void const* data_;
};

// One element of an output: y(n, k, p, q) = sum rounds the sum once to the type of y.
class Element {
 public:
  Element(DataType type, void* data, Index offset) : type_(type), data_(data), offset_(offset) {}
  Element(Element const&) = default;
  void operator=(double value) const { store(type_, data_, offset_, value); }
  void operator=(Element const& other) const { *this = static_cast<double>(other); }
  operator double() const { return load(type_, data_, offset_); }

 private:
  DataType type_;
  void* data_;
  Index offset_;
};

// The elements of an output, or of a tensor that is updated in place.
class Output {
 public:
  Output(TensorDescription const& description, void* data)
      : type_(description.type), layout_(description.layout), data_(data) {}

  Shape const& shape() const { return layout_.shape; }
  Index extent(int dimension) const { return layout_.extent(dimension); }

  template <class... Indices>
  requires(std::is_integral_v<Indices>&&...) Element operator()(Indices... at) const {
    return Element(type_, data_, layout_.offset(at...));
  }
  Element operator()(Position const& position) const {
    return Element(type_, data_, layout_.offset_of(position.at));
  }

 private:
  DataType type_;
  Layout layout_;
  void* data_;
};

// Calls visit(position) for every index tuple of `shape`, the last index fastest.
template <class Visit>
void for_each_index(Shape const& shape, Visit const& visit) {
  if (shape.size() == 0) return;
  Position position;
  int d = 0;
  do {
    visit(static_cast<Position const&>(position));
    for (d = shape.rank - 1; d >= 0 && ++position[d] == shape[d]; --d) position[d] = 0;
  } while (d >= 0);
}

// `shape` with an extent of 1 in `dimension`.
inline Shape without(Shape shape, int dimension) {
  shape[dimension] = 1;
  return shape;
}

}  // namespace cosmati::reference
