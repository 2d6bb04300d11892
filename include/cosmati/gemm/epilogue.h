// Epilogues, applied to the sums before they are stored: an expression of the epilogue language, or any
// callable.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/destination.h"

namespace cosmati {

// An operand, source or store of an expression: its type, its indices, and the width of its runs along n (1
// unless it is contiguous along n).
template <class Element_, bool by_m_, bool by_n_, int width_ = 1>
struct OperandFormat {
  using Element = Element_;
  static constexpr bool by_m = by_m_, by_n = by_n_;
  static constexpr int width = width_;
};
template <class... Format>
struct FormatList {
  static constexpr int size = sizeof...(Format);
};
struct NoSource {};

// The identity: the sum in its own type.
template <class Real_>
struct IdentityEpilogue {
  using Real = Real_;
  using Arguments = NoEpilogueArguments;
  struct Tile {
    COSMATI_DEVICE Tile(Arguments const&, Index, Index, Index) {}
  };
  template <int count>
  COSMATI_DEVICE static void apply(Tile const&, int, int, int, Real (&)[count]) {}
};

template <class Callable, class Real>
concept EpilogueCallable = requires(Callable const callable, Real sum, Index m, Index n) {
  sum = callable(sum, m, n);
};

// A callable Real operator()(Real sum, Index m, Index n) const, evaluated once for each element of D. Its
// state is part of the kernel's parameters, so it needs nvcc (or the emulator).
template <class Real_, class Callable>
struct CallableEpilogue {
  static_assert(
      EpilogueCallable<Callable, Real_>,
      "an epilogue callable must be const, take (Real sum, Index m, Index n) and return the value of d(m, "
      "n)");
  using Real = Real_;
  using Arguments = Callable;
  struct Tile {
    Callable const& callable;
    Index first_m, first_n;
    COSMATI_DEVICE Tile(Arguments const& arguments, Index, Index m, Index n)
        : callable(arguments), first_m(m), first_n(n) {}
  };
  template <int count>
  COSMATI_DEVICE static void apply(Tile const& tile, int m, int n, int valid, Real (&value)[count]) {
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i)
      if (i < valid) value[i] = tile.callable(value[i], tile.first_m + m, tile.first_n + n + i);
  }
};

// One operand in one tile.
template <class Geometry, class Format>
struct OperandTile {
  typename Geometry::template Tile<typename Format::Element, Format::width, Format::by_m, Format::by_n>
      matrix;
  template <class Real, int count>
  COSMATI_DEVICE void load(int m, int n, int valid, Real (&to)[count]) const {
    if constexpr (Format::by_n) {
      matrix.load(Format::by_m ? m : 0, n, valid, to);  // rows share a load
    } else {
      Real one[1];
      matrix.load(m, 0, 1, one);
      COSMATI_UNROLL
      for (int i = 0; i < count; ++i) to[i] = one[0];
    }
  }

  // Lane `lane` of a warp prefetches its share of the operand rows row(0) to row(rows - 1), at most 32: a
  // vector into L1, by a load whose value is returned, and a matrix into L2.
  template <class Real, int rows, int columns, class Row>
  COSMATI_DEVICE Real prefetch(int lane, Row const& row, int valid_m, int valid_n) const {
    constexpr int line = 128 / static_cast<int>(sizeof(typename Format::Element));
    Real one[1] = {};
    if constexpr (Format::by_m && Format::by_n) {
      constexpr int lines = (columns + line - 1) / line;
      COSMATI_UNROLL
      for (int i = 0; i < rows * lines; i += 32) {
        int const m = row((lane + i) / lines), n = (lane + i) % lines * line;
        if (Format::width > 1 && m < valid_m && n < valid_n) matrix.prefetch(m, n);
      }
    } else if constexpr (Format::by_n) {
      int const n = lane * columns / 32;
      if (n < valid_n) matrix.load(0, n, 1, one);
    } else if constexpr (Format::by_m) {
      if (lane < rows && row(lane) < valid_m) matrix.load(row(lane), 0, 1, one);
    }
    return one[0];
  }
};

// A list of operands whose addresses are computed once per tile.
template <class Geometry, class... Format>
struct OperandTiles {
  COSMATI_DEVICE OperandTiles(typename Geometry::Arguments const*, Index, Index, Index) {}
  template <class Real, int count, int of>
  COSMATI_DEVICE void load(int, int, int, Real (&)[of][count], int) const {}
  template <class Real, int count, int of>
  COSMATI_DEVICE void store(int, int, int, Real const (&)[of][count], int) const {}
  template <class Real, int rows, int columns, class Row>
  COSMATI_DEVICE Real prefetch(int, Row const&, int, int) const {
    return 0;
  }
};
template <class Geometry, class First, class... Rest>
struct OperandTiles<Geometry, First, Rest...> {
  OperandTile<Geometry, First> first;
  OperandTiles<Geometry, Rest...> rest;
  COSMATI_DEVICE OperandTiles(typename Geometry::Arguments const* matrix, Index batch, Index m, Index n)
      : first{{matrix[0], batch, m, n}}, rest(matrix + 1, batch, m, n) {}
  // Loads or stores runs of all operands; `at` is the index of this list's first operand.
  template <class Real, int count, int of>
  COSMATI_DEVICE void load(int m, int n, int valid, Real (&to)[of][count], int at) const {
    first.load(m, n, valid, to[at]);
    rest.load(m, n, valid, to, at + 1);
  }
  template <class Real, int count, int of>
  COSMATI_DEVICE void store(int m, int n, int valid, Real const (&from)[of][count], int at) const {
    first.matrix.store(m, n, valid, from[at]);
    rest.store(m, n, valid, from, at + 1);
  }
  template <class Real, int rows, int columns, class Row>
  COSMATI_DEVICE Real prefetch(int lane, Row const& row, int valid_m, int valid_n) const {
    return first.template prefetch<Real, rows, columns>(lane, row, valid_m, valid_n) +
           rest.template prefetch<Real, rows, columns>(lane, row, valid_m, valid_n);
  }
};
template <class Geometry>
struct OperandTiles<Geometry, NoSource> : OperandTiles<Geometry> {
  using OperandTiles<Geometry>::OperandTiles;
};

// A Function is { using Real; static constexpr int scalars; static Real apply(Real acc, Real c,
// Real const* scalar, Real const* operand, Real* store) }: what epilogue::to_cuda prints, evaluated in Real.
template <class Function, class SourceFormat, class Operands, class Stores, class Geometry = MatrixGeometry>
struct ExpressionEpilogue;

template <class Function, class SourceFormat, class... Operand, class... Store, class Geometry>
struct ExpressionEpilogue<Function, SourceFormat, FormatList<Operand...>, FormatList<Store...>, Geometry> {
  using Real = typename Function::Real;
  static constexpr bool has_source = !is_same<SourceFormat, NoSource>;
  static constexpr int operands = sizeof...(Operand), stores = sizeof...(Store);
  static constexpr bool few = few_arguments_do(operands, stores, Function::scalars);
  using Arguments = typename Geometry::template EpilogueArguments<few>::type;

  struct Tile {
    OperandTiles<Geometry, SourceFormat> source;
    OperandTiles<Geometry, Operand...> operands;
    OperandTiles<Geometry, Store...> stores;
    Real scalar[Function::scalars + 1];  // converted once
    COSMATI_DEVICE Tile(Arguments const& all, Index batch, Index m, Index n)
        : source(&all.source, batch, m, n),
          operands(all.operands, batch, m, n),
          stores(all.stores, batch, m, n) {
      COSMATI_UNROLL
      for (int s = 0; s < Function::scalars; ++s) {
        scalar[s] = static_cast<Real>(all.scalars[s]);
        arch::fence_registers(scalar[s]);
      }
    }
  };

  // Prefetches the operands of a warp's (rows, columns) while its sums are still computed. Using the returned
  // value waits for the loads.
  template <int rows, int columns, class Row>
  COSMATI_DEVICE static Real prefetch(Arguments const& all, Index batch, Index m, Index n, int lane,
                                      Row const& row, int valid_m, int valid_n) {
    OperandTiles<Geometry, SourceFormat> const of_source(&all.source, batch, m, n);
    OperandTiles<Geometry, Operand...> const of_operands(all.operands, batch, m, n);
    return of_source.template prefetch<Real, rows, columns>(lane, row, valid_m, valid_n) +
           of_operands.template prefetch<Real, rows, columns>(lane, row, valid_m, valid_n);
  }

  template <int count>
  COSMATI_DEVICE static void apply(Tile const& tile, int m, int n, int valid, Real (&value)[count]) {
    Real source[1][count] = {}, operand[operands + 1][count], stored[stores + 1][count];
    tile.source.load(m, n, valid, source, 0);
    tile.operands.load(m, n, valid, operand, 0);
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i) {
      Real mine[operands + 1], out[stores + 1];
      COSMATI_UNROLL
      for (int o = 0; o < operands; ++o) mine[o] = operand[o][i];
      value[i] = Function::apply(value[i], source[0][i], tile.scalar, mine, out);
      COSMATI_UNROLL
      for (int s = 0; s < stores; ++s) stored[s][i] = out[s];
    }
    tile.stores.store(m, n, valid, stored, 0);
  }
};

// Requirements on an epilogue, as static_assert messages.
template <class Epilogue>
struct EpilogueRequirements {
  static_assert(
      requires { typename Epilogue::Real; },
      "an epilogue must define the type in which it is evaluated: using Real = ...; wrap a plain callable "
      "in CallableEpilogue<Real, Callable>");
  static_assert(
      requires { typename Epilogue::Arguments; },
      "an epilogue must define the type of its kernel parameters: using Arguments = ...;");
  static_assert(
      required::MadeFrom<typename Epilogue::Tile, typename Epilogue::Arguments, Index, Index, Index>,
      "an epilogue must have a Tile(Arguments const&, Index batch, Index first_m, Index first_n)");
  static_assert(
      requires(typename Epilogue::Tile const tile, typename Epilogue::Real (&value)[4]) {
        Epilogue::apply(tile, 0, 0, 4, value);
      },
      "an epilogue must have template <int count> static void apply(Tile const&, int m, int n, int valid, "
      "Real "
      "(&value)[count])");
  static constexpr bool satisfied = true;
};

}  // namespace cosmati
