// What becomes of the sums before they are stored: an expression of the epilogue language, or any callable.
#pragma once
#include "cosmati/gemm/destination.h"

namespace cosmati {

// An operand, source or extra output of an expression: its type, which indices it has, and the width of its
// runs along n (1 unless its neighbours along n are neighbours in memory).
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

// No expression: the sum itself, in its own type.
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
      "an epilogue callable takes (Real sum, Index m, Index n), is const, and returns the value of d(m, n)");
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
template <class Format>
struct OperandTile {
  MatrixTile<typename Format::Element, Format::width> matrix;
  template <class Real, int count>
  COSMATI_DEVICE void load(int m, int n, int valid, Real (&to)[count]) const {
    if constexpr (Format::by_n) {
      matrix.load(m, n, valid, to);
    } else {
      Real one[1];
      matrix.load(m, 0, 1, one);
      COSMATI_UNROLL
      for (int i = 0; i < count; ++i) to[i] = one[0];
    }
  }
};

template <bool few>
struct ArgumentsBySize {
  using type = FewEpilogueArguments;
};
template <>
struct ArgumentsBySize<false> {
  using type = ManyEpilogueArguments;
};
template <bool few>
using EpilogueArgumentsFor = typename ArgumentsBySize<few>::type;

// A Function is { using Real; static constexpr int scalars; static Real apply(Real acc, Real c,
// Real const* scalar, Real const* operand, Real* store) }: what epilogue::to_cuda prints, evaluated in Real.
template <class Function, class SourceFormat, class Operands, class Stores>
struct ExpressionEpilogue;

template <class Function, class SourceFormat, class... Operand, class... Store>
struct ExpressionEpilogue<Function, SourceFormat, FormatList<Operand...>, FormatList<Store...>> {
  using Real = typename Function::Real;
  static constexpr bool has_source = !is_same<SourceFormat, NoSource>;
  static constexpr int operands = sizeof...(Operand), stores = sizeof...(Store);
  using Arguments = EpilogueArgumentsFor<few_arguments_do(operands, stores, Function::scalars)>;

  struct Tile {
    Arguments const& arguments;
    Index batch, first_m, first_n;
    COSMATI_DEVICE Tile(Arguments const& all, Index at_batch, Index m, Index n)
        : arguments(all), batch(at_batch), first_m(m), first_n(n) {}
    template <class Format>
    COSMATI_DEVICE OperandTile<Format> of(MatrixArguments const& matrix) const {
      return {{matrix, batch, first_m, first_n}};
    }
  };

  template <int count>
  COSMATI_DEVICE static void apply(Tile const& tile, int m, int n, int valid, Real (&value)[count]) {
    Real source[count] = {}, operand[operands + 1][count], scalar[Function::scalars + 1];
    Real stored[stores + 1][count];
    if constexpr (has_source) tile.template of<SourceFormat>(tile.arguments.source).load(m, n, valid, source);
    int at = 0;
    ((tile.template of<Operand>(tile.arguments.operands[at]).load(m, n, valid, operand[at]), ++at), ...);
    COSMATI_UNROLL
    for (int s = 0; s < Function::scalars; ++s) scalar[s] = static_cast<Real>(tile.arguments.scalars[s]);
    COSMATI_UNROLL
    for (int i = 0; i < count; ++i) {
      Real mine[operands + 1], out[stores + 1];
      COSMATI_UNROLL
      for (int o = 0; o < operands; ++o) mine[o] = operand[o][i];
      value[i] = Function::apply(value[i], source[i], scalar, mine, out);
      COSMATI_UNROLL
      for (int s = 0; s < stores; ++s) stored[s][i] = out[s];
    }
    at = 0;
    ((tile.template of<Store>(tile.arguments.stores[at]).matrix.store(m, n, valid, stored[at]), ++at), ...);
  }
};

// What an epilogue must have, as sentences.
template <class Epilogue>
struct EpilogueRequirements {
  static_assert(
      requires { typename Epilogue::Real; },
      "an epilogue names the type that it computes in: using Real = ...; a plain callable becomes an "
      "epilogue "
      "by CallableEpilogue<Real, Callable>");
  static_assert(
      requires { typename Epilogue::Arguments; },
      "an epilogue names the type of what a launch hands to it: using Arguments = ...;");
  static_assert(
      required::MadeFrom<typename Epilogue::Tile, typename Epilogue::Arguments, Index, Index, Index>,
      "an epilogue has a Tile(Arguments const&, Index batch, Index first_m, Index first_n)");
  static_assert(
      requires(typename Epilogue::Tile const tile, typename Epilogue::Real (&value)[4]) {
        Epilogue::apply(tile, 0, 0, 4, value);
      },
      "an epilogue has template <int count> static void apply(Tile const&, int m, int n, int valid, Real "
      "(&value)[count])");
  static constexpr bool satisfied = true;
};

}  // namespace cosmati
