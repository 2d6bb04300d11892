// Destination of a convolution's results: rows and columns of the product consist of digits.
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/gemm/destination.h"

namespace cosmati {

// How an index determines an offset: not at all; by its last digit, which is then its only one; or by all its
// digits, and finding them takes two divisions.
enum class DigitUse : unsigned char { none, one, all };
COSMATI_CONSTEXPR DigitUse use_of(bool is_used, bool has_one) {
  return !is_used ? DigitUse::none : has_one ? DigitUse::one : DigitUse::all;
}

// Like MatrixTile. With width > 1 a run lies within the last digit of n, whose stride is 1.
template <class Element, int width, DigitUse rows, DigitUse columns>
class DigitTile {
 public:
  COSMATI_DEVICE DigitTile(DigitArguments const& arguments, Index batch, Index first_m, Index first_n)
      : arguments_(arguments),
        data_(arch::as_global(static_cast<Element*>(arguments.data) + batch * arguments.batch_stride)),
        first_m_(static_cast<int>(first_m)),
        first_n_(static_cast<int>(first_n)) {}

  template <class Real, int count>
  COSMATI_DEVICE void load(int m, int n, int valid, Real (&to)[count]) const {
    constexpr int step = width < count ? width : count;
    Element const* const row = data_ + row_offset(m);
    COSMATI_UNROLL
    for (int i = 0; i < count; i += step) {
      if (i + step <= valid) {
        auto const run = arch::load<Vector<Element, step>>(row + column_offset(n + i));
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e) to[i + e] = arch::number_cast<Real>(run[e]);
      } else {
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e)
          to[i + e] = i + e < valid ? arch::number_cast<Real>(row[column_offset(n + i + e)]) : Real{};
      }
    }
  }

  COSMATI_DEVICE void prefetch(int m, int n) const {
    arch::prefetch(data_ + row_offset(m) + column_offset(n));
  }

  template <class Real, int count>
  COSMATI_DEVICE void store(int m, int n, int valid, Real const (&from)[count]) const {
    constexpr int step = width < count ? width : count;
    Element* const row = data_ + row_offset(m);
    COSMATI_UNROLL
    for (int i = 0; i < count; i += step) {
      if (i + step <= valid) {
        Vector<Element, step> run;
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e) run[e] = arch::number_cast<Element>(from[i + e]);
        arch::store_global(row + column_offset(n + i), run);
      } else {
        COSMATI_UNROLL
        for (int e = 0; e < step; ++e)
          if (i + e < valid) row[column_offset(n + i + e)] = arch::number_cast<Element>(from[i + e]);
      }
    }
  }

 private:
  template <DigitUse use>
  COSMATI_DEVICE static Index offset(DigitExtents const& extents, Index const (&stride)[3], int index) {
    if constexpr (use == DigitUse::none) return 0;
    if constexpr (use == DigitUse::one) return index * stride[2];
    Digits const at = extents.digits(index);
    return at.first * stride[0] + at.middle * stride[1] + at.last * stride[2];
  }
  COSMATI_DEVICE Index row_offset(int m) const {
    return offset<rows>(arguments_.row_extents, arguments_.row_stride, first_m_ + m);
  }
  COSMATI_DEVICE Index column_offset(int n) const {
    return offset<columns>(arguments_.column_extents, arguments_.column_stride, first_n_ + n);
  }

  DigitArguments const& arguments_;
  Element* data_;
  int first_m_, first_n_;
};

template <bool few>
struct ConvolutionEpilogueArguments {
  using type = FewConvolutionArguments;
};
template <>
struct ConvolutionEpilogueArguments<false> {
  using type = ManyConvolutionArguments;
};

// `one_m`, `one_n`: whether the index has only one digit.
template <bool one_m, bool one_n>
struct DigitGeometry {
  using Arguments = DigitArguments;
  template <class Element, int width, bool by_m, bool by_n>
  using Tile = DigitTile<Element, width, use_of(by_m, one_m), use_of(by_n, one_n)>;
  template <bool few>
  using EpilogueArguments = ConvolutionEpilogueArguments<few>;
};

// `along`: see StridedDestination.
template <class Element_, int width_, bool one_m, bool one_n, Along along_ = Along::k>
struct ConvDestination {
  using Element = Element_;
  using Arguments = DigitArguments;
  using Tile = DigitTile<Element, width_, use_of(true, one_m), use_of(true, one_n)>;
  static constexpr int width = width_;
  static constexpr Along along = along_;
};

// Applies the epilogue to the sum of one weight of a filter gradient, and stores the result. `number`: of the
// weight among those of its filter; `swapped`: m is the number, n the filter.
template <class Traits, class Params, class Sum>
COSMATI_DEVICE void store_weight(Params const& params, bool swapped, Index group, int filter, int number,
                                 Sum sum) {
  using Real = typename Traits::Epilogue::Real;
  int const m = swapped ? number : filter, n = swapped ? filter : number;
  Real value[1] = {arch::number_cast<Real>(sum)};
  typename Traits::Epilogue::Tile const epilogue(params.epilogue, group, m, n);
  Traits::Epilogue::apply(epilogue, 0, 0, 1, value);
  typename Traits::Destination::Tile const d(params.d, group, m, n);
  d.store(0, 0, 1, value);
}

}  // namespace cosmati
