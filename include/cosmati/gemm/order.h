// Memory order of dense matrices, in terms of mathematics and BLAS, and its mapping to sources and
// destinations: D = A * B with A (m, k), B (k, n), D (m, n).
#pragma once
#include "cosmati/gemm/arguments.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// With leading dimension l, element (i, j) has the offset i * l + j (row-major) or i + j * l (column-major).
enum class Order : unsigned char { row_major, column_major };

struct Orders {
  Order a, b, d;
};

// BLAS names for column-major matrices: N is stored as multiplied, T is stored transposed; a transposed
// column-major matrix is row-major.
inline constexpr Orders NN{Order::column_major, Order::column_major, Order::column_major};
inline constexpr Orders NT{Order::column_major, Order::row_major, Order::column_major};
inline constexpr Orders TN{Order::row_major, Order::column_major, Order::column_major};
inline constexpr Orders TT{Order::row_major, Order::row_major, Order::column_major};
// The order of C arrays: a[i][j], b[i][j], d[i][j].
inline constexpr Orders all_row_major{Order::row_major, Order::row_major, Order::row_major};

// Sources see an operand as (outer, depth): A as (m, k), B as (n, k).
COSMATI_CONSTEXPR Along along_of_a(Order order) { return order == Order::row_major ? Along::k : Along::mn; }
COSMATI_CONSTEXPR Along along_of_b(Order order) { return order == Order::row_major ? Along::mn : Along::k; }

// Strides are in elements; matrix i of a batch begins at data + i * batch_stride, in device memory.
template <class Element>
COSMATI_CONSTEXPR MatrixArguments row_major(Element* data, Index leading_dimension, Index batch_stride = 0) {
  MatrixArguments matrix;
  matrix.data = const_cast<void*>(static_cast<void const*>(data));  // kernels only read operands
  matrix.row_stride = leading_dimension;
  matrix.column_stride = 1;
  matrix.batch_stride = batch_stride;
  return matrix;
}
template <class Element>
COSMATI_CONSTEXPR MatrixArguments column_major(Element* data, Index leading_dimension,
                                               Index batch_stride = 0) {
  MatrixArguments matrix = row_major(data, 1, batch_stride);
  matrix.column_stride = leading_dimension;
  return matrix;
}

// A, B and D as kernel parameters. B is passed transposed, with rows n.
template <class Element>
COSMATI_CONSTEXPR MatrixArguments matrix_a(Order order, Element const* data, Index leading_dimension,
                                           Index batch_stride = 0) {
  return order == Order::row_major ? row_major(data, leading_dimension, batch_stride)
                                   : column_major(data, leading_dimension, batch_stride);
}
template <class Element>
COSMATI_CONSTEXPR MatrixArguments matrix_b(Order order, Element const* data, Index leading_dimension,
                                           Index batch_stride = 0) {
  return order == Order::row_major ? column_major(data, leading_dimension, batch_stride)
                                   : row_major(data, leading_dimension, batch_stride);
}
template <class Element>
COSMATI_CONSTEXPR MatrixArguments matrix_d(Order order, Element* data, Index leading_dimension,
                                           Index batch_stride = 0) {
  return order == Order::row_major ? row_major(data, leading_dimension, batch_stride)
                                   : column_major(data, leading_dimension, batch_stride);
}

}  // namespace cosmati
