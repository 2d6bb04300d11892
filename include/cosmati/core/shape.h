// Shape, Layout and TensorView: up to six dimensions, any 64-bit strides.
// A tensor of images is always indexed (n, c, h, w); NCHW, NHWC and CHWN are three choices of its strides.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

inline constexpr int max_rank = 6;

// The extents of a tensor; Shape{} has rank 0 and one element.
struct Shape {
  int rank = 0;
  Index extent[max_rank] = {};

  Shape() = default;
  template <class... Extents>
  COSMATI_CONSTEXPR Shape(Index first, Extents... rest)
      : rank(1 + sizeof...(rest)), extent{first, static_cast<Index>(rest)...} {
    static_assert(1 + sizeof...(rest) <= max_rank, "a shape has at most six dimensions");
  }
  COSMATI_CONSTEXPR Index operator[](int dimension) const { return extent[dimension]; }
  COSMATI_CONSTEXPR Index& operator[](int dimension) { return extent[dimension]; }
  // Number of elements; the caller must ensure that it does not overflow (checked_size in ops/tensor.h).
  COSMATI_CONSTEXPR Index size() const {
    Index product = 1;
    for (int d = 0; d < rank; ++d) product *= extent[d];
    return product;
  }
  friend COSMATI_CONSTEXPR bool operator==(Shape const& a, Shape const& b) {
    if (a.rank != b.rank) return false;
    for (int d = 0; d < a.rank; ++d)
      if (a.extent[d] != b.extent[d]) return false;
    return true;
  }
};

// Shape and strides, in elements: element (i, j, ...) has the offset i * stride[0] + j * stride[1] + ...
struct Layout {
  Shape shape;
  Index stride[max_rank] = {};

  COSMATI_CONSTEXPR int rank() const { return shape.rank; }
  COSMATI_CONSTEXPR Index extent(int dimension) const { return shape.extent[dimension]; }
  COSMATI_CONSTEXPR Index size() const { return shape.size(); }
  template <class... Indices>
  COSMATI_CONSTEXPR Index offset(Indices... indices) const {
    Index const at[] = {static_cast<Index>(indices)...};
    return offset_of(at);
  }
  COSMATI_CONSTEXPR Index offset_of(Index const* at) const {
    Index sum = 0;
    for (int d = 0; d < shape.rank; ++d) sum += at[d] * stride[d];
    return sum;
  }
  // Returns the offset of element number `linear` in row-major order of the indices.
  COSMATI_CONSTEXPR Index offset_of_linear(Index linear) const {
    Index sum = 0;
    for (int d = shape.rank - 1; d >= 0; --d) {
      sum += linear % shape.extent[d] * stride[d];
      linear /= shape.extent[d];
    }
    return sum;
  }
  // One more than the largest offset; 0 if there are no elements. Strides must not be negative.
  COSMATI_CONSTEXPR Index span() const {
    if (size() == 0) return 0;
    Index last = 0;
    for (int d = 0; d < shape.rank; ++d) last += (shape.extent[d] - 1) * stride[d];
    return last + 1;
  }
  // True if the elements fill [0, size) in row-major order; dimensions of extent 1 are ignored.
  COSMATI_CONSTEXPR bool is_row_major() const {
    Index expected = 1;
    for (int d = shape.rank - 1; d >= 0; --d) {
      if (shape.extent[d] != 1 && stride[d] != expected) return false;
      expected *= shape.extent[d];
    }
    return true;
  }
  // True if the elements fill [0, size) in some order of the dimensions.
  COSMATI_CONSTEXPR bool is_dense() const { return span() == size() && !overlaps(); }
  // False only if no two index tuples share an element; conservatively true for some interleaved layouts
  // without overlap.
  COSMATI_CONSTEXPR bool overlaps() const {
    if (size() == 0) return false;
    int order[max_rank] = {};
    int count = 0;
    for (int d = 0; d < shape.rank; ++d) {
      if (shape.extent[d] <= 1) continue;
      int at = count++;
      for (; at > 0 && stride[order[at - 1]] > stride[d]; --at) order[at] = order[at - 1];
      order[at] = d;
    }
    Index reach = 0;  // the largest offset among the dimensions seen so far
    for (int i = 0; i < count; ++i) {
      if (stride[order[i]] <= reach) return true;
      reach += (shape.extent[order[i]] - 1) * stride[order[i]];
    }
    return false;
  }
  // Dimension d of the result is dimension order[d] of this.
  template <class... Order>
  COSMATI_CONSTEXPR Layout permuted(Order... order) const {
    int const from[] = {static_cast<int>(order)...};
    Layout result;
    result.shape.rank = sizeof...(order);
    for (int d = 0; d < result.shape.rank; ++d) {
      result.shape.extent[d] = shape.extent[from[d]];
      result.stride[d] = stride[from[d]];
    }
    return result;
  }
  friend COSMATI_CONSTEXPR bool operator==(Layout const& a, Layout const& b) {
    if (!(a.shape == b.shape)) return false;
    for (int d = 0; d < a.shape.rank; ++d)
      if (a.stride[d] != b.stride[d]) return false;
    return true;
  }
};

// Last index fastest, as in C.
COSMATI_CONSTEXPR Layout row_major(Shape shape) {
  Layout layout{shape, {}};
  Index step = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    layout.stride[d] = step;
    step *= shape.extent[d];
  }
  return layout;
}

// First index fastest, as in Fortran and BLAS.
COSMATI_CONSTEXPR Layout column_major(Shape shape) {
  Layout layout{shape, {}};
  Index step = 1;
  for (int d = 0; d < shape.rank; ++d) {
    layout.stride[d] = step;
    step *= shape.extent[d];
  }
  return layout;
}

// The memory order of images, slowest index first.
enum class TensorFormat : unsigned char { nchw, nhwc, chwn };

COSMATI_CONSTEXPR char const* name_of(TensorFormat format) {
  return format == TensorFormat::nchw ? "nchw" : format == TensorFormat::nhwc ? "nhwc" : "chwn";
}

// Returns the layout of a dense tensor indexed (n, c, h, w) in the memory order `format`. For a filter,
// indexed (k, c, r, s), the same three letters mean KCRS, KRSC and CRSK.
COSMATI_CONSTEXPR Layout image_layout(TensorFormat format, Index n, Index c, Index h, Index w) {
  switch (format) {
    case TensorFormat::nhwc: return row_major({n, h, w, c}).permuted(0, 3, 1, 2);
    case TensorFormat::chwn: return row_major({c, h, w, n}).permuted(3, 0, 1, 2);
    case TensorFormat::nchw: break;
  }
  return row_major({n, c, h, w});
}

// Elements of one type at `data` with layout `layout`; non-owning.
template <class Element>
struct TensorView {
  Element* data = nullptr;
  Layout layout;
  template <class... Indices>
  COSMATI_CONSTEXPR Element& operator()(Indices... indices) const {
    return data[layout.offset(indices...)];
  }
};

}  // namespace cosmati
