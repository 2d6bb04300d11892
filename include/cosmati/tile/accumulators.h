// A thread's tile of sums in registers, and the addition of products.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/vector.h"
#include "cosmati/tile/multiply.h"

namespace cosmati {

// The operands of one depth: packs of A for the thread's rows, of B for its columns.
template <class PackA, class PackB, int rows, int columns>
struct Fragments {
  PackA a[rows];
  PackB b[columns];
};

// Visits the products (i, j) row by row in alternating direction, so that consecutive products share an
// operand, which the multiply-add takes from the reuse cache: the two banks of the register file deliver two
// operands per clock, and an instruction that fetches three delays the next one (docs/decisions/0004).
template <int rows, int columns, class Visit>
COSMATI_DEVICE void for_each_product(Visit&& visit) {
  COSMATI_UNROLL
  for (int i = 0; i < rows; ++i) {
    COSMATI_UNROLL
    for (int j = 0; j < columns; ++j) visit(i, i % 2 == 0 ? j : columns - 1 - j);
  }
}

// Sums of a * b in Sum, for f32, f64 and s32.
template <Multiply multiply, class Sum_, int rows_, int columns_>
struct Accumulators {
  using Sum = Sum_;
  static constexpr int rows = rows_, columns = columns_;
  Sum value[rows][columns] = {};

  COSMATI_DEVICE Sum get(int i, int j) const { return value[i][j]; }

  template <class PackA, class PackB>
  COSMATI_DEVICE void add_product(Fragments<PackA, PackB, rows, columns> const& fragment) {
    Sum a[rows], b[columns];
    COSMATI_UNROLL
    for (int i = 0; i < rows; ++i) a[i] = arch::number_cast<Sum>(fragment.a[i]);
    COSMATI_UNROLL
    for (int j = 0; j < columns; ++j) b[j] = arch::number_cast<Sum>(fragment.b[j]);
    for_each_product<rows, columns>(
        [&](int i, int j) { value[i][j] = arch::multiply_add(a[i], b[j], value[i][j]); });
  }

  // Visits every register, in the same order in every thread.
  template <class Visit>
  COSMATI_DEVICE void for_each(Visit&& visit) {
    COSMATI_UNROLL
    for (int i = 0; i < rows; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < columns; ++j) visit(value[i][j]);
    }
  }
  COSMATI_DEVICE static void add(Sum& sum, Sum more) { sum += more; }
  using Register = Sum;
  static constexpr int registers = rows * columns;
};

// f16 sums, two adjacent columns per register.
template <int rows_, int columns_>
struct Accumulators<Multiply::half2, f16, rows_, columns_> {
  using Sum = f16;
  using Register = arch::HalfPair;
  static constexpr int rows = rows_, columns = columns_, registers = rows_ * columns_ / 2;
  arch::HalfPair value[rows][columns / 2] = {};

  COSMATI_DEVICE f16 get(int i, int j) const {
    return j % 2 == 0 ? arch::low_half(value[i][j / 2]) : arch::high_half(value[i][j / 2]);
  }
  template <class PackA>
  COSMATI_DEVICE void add_product(Fragments<PackA, f16, rows, columns> const& fragment) {
    for_each_product<rows, columns / 2>([&](int i, int j) {
      value[i][j] = arch::multiply_add(
          twice(fragment.a[i]), arch::make_pair(fragment.b[2 * j], fragment.b[2 * j + 1]), value[i][j]);
    });
  }
  template <class Visit>
  COSMATI_DEVICE void for_each(Visit&& visit) {
    COSMATI_UNROLL
    for (int i = 0; i < rows; ++i) {
      COSMATI_UNROLL
      for (int j = 0; j < columns / 2; ++j) visit(value[i][j]);
    }
  }
  COSMATI_DEVICE static void add(arch::HalfPair& sum, arch::HalfPair more) {
    arch::HalfPair const one{0x3c003c00u};
    sum = arch::multiply_add(more, one, sum);
  }

 private:
  // The main loop duplicates operands when it converts them: an instruction that selects half of a register
  // is limited to one of the two pipes.
  COSMATI_DEVICE static arch::HalfPair twice(arch::HalfPair twins) { return twins; }
  COSMATI_DEVICE static arch::HalfPair twice(f16 value) { return arch::make_pair(value, value); }
};

// s32 sums of products of four bytes; a pack contains the bytes of four adjacent depths.
struct SignedBytes {
  unsigned bits;
};
struct UnsignedBytes {
  unsigned bits;
};
template <int rows_, int columns_>
struct Accumulators<Multiply::dp4a, s32, rows_, columns_>
    : Accumulators<Multiply::fma, s32, rows_, columns_> {
  using Base = Accumulators<Multiply::fma, s32, rows_, columns_>;
  template <class PackA, class PackB>
  COSMATI_DEVICE void add_product(Fragments<PackA, PackB, rows_, columns_> const& fragment) {
    constexpr bool signed_a = is_same<PackA, SignedBytes>, signed_b = is_same<PackB, SignedBytes>;
    for_each_product<rows_, columns_>([&](int i, int j) {
      this->value[i][j] =
          arch::dot4<signed_a, signed_b>(fragment.a[i].bits, fragment.b[j].bits, this->value[i][j]);
    });
  }
};

}  // namespace cosmati
