// The results of a thread of depthwise_rows: their position, also in a phase of a dilated convolution, and
// storing them.
#pragma once
#include "cosmati/arch/words.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/depthwise/depthwise_rows_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// The result, of which a thread stores `width` contiguous channels at a time.
template <class Element, int width_>
struct OffsetDestination {
  using Arguments = DigitArguments;
  static constexpr int width = width_;
  COSMATI_DEVICE static Element* at(Arguments const& d, Index offset) {
    return arch::as_global(static_cast<Element*>(d.data)) + offset;
  }
  // `offset`: of the first channel; `stride`: between channels, unless they are contiguous.
  template <class Real, int count>
  COSMATI_DEVICE static void store(Element* to, int offset, Index stride, Real const (&value)[count]) {
    COSMATI_UNROLL
    for (int i = 0; i < count; i += width) {
      float run[width];
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) run[e] = arch::number_cast<float>(value[i + e]);
      arch::store_words(to + offset + i * (width > 1 ? 1 : stride), arch::narrowed<Element>(run));
    }
  }
};

// The position of a thread's results: their channels, the columns of the run, and the parts of the rows.
struct DepthwiseRowsPlace {
  int channel, run, part, image;
};
template <class Traits>
COSMATI_DEVICE DepthwiseRowsPlace place_of(DepthwiseRowsSchedule const& schedule, int thread) {
  int const upper = schedule.first.quotient(thread), first = thread - upper * schedule.first.divisor;
  int const rest = schedule.second.quotient(upper), second = upper - rest * schedule.second.divisor;
  int const image = schedule.third.quotient(rest), third = rest - image * schedule.third.divisor;
  if (Traits::shape.channels_last) return {first * Traits::shape.vector, second, third, image};
  return {third, first, second, image};
}

// The distances between adjacent rows and columns of results, and the first ones of the phase.
struct DepthwiseRowsResults {
  int down = 1, right = 1, first_row = 0, first_column = 0;
};

// Describes the image of one phase of a dilated convolution, and sets `image` to the index of the image.
template <class Traits>
COSMATI_DEVICE DepthwiseRowsResults enter_phase(DepthwiseRowsArguments& all,
                                                DepthwiseRowsSchedule const& schedule, int& image) {
  using Element = typename Traits::ElementA;
  constexpr DepthwiseRowsShape shape = Traits::shape;
  int const rows = schedule.row_phases.divisor, columns = schedule.column_phases.divisor;
  int const rest = schedule.column_phases.quotient(image), of_column = image - rest * columns;
  image = schedule.row_phases.quotient(rest);
  int const of_row = rest - image * rows;
  DepthwiseRowsPhase const row(of_row, rows, all.pad_row, shape.transposed),
      column(of_column, columns, all.pad_column, shape.transposed);
  all.row_origin = row.first - (shape.transposed ? shape.live_groups() - 1 : 0);
  all.column_origin = column.first - shape.columns_before();
  all.image = static_cast<Element const*>(all.image) + row.from * all.image_row +
              column.from * Index{all.image_column};
  all.height = row.positions(all.height, row.from, rows);
  all.width = column.positions(all.width, column.from, columns);
  all.image_row *= rows, all.image_column *= columns;
  return {rows, columns, of_row, of_column};
}

// Stores the finished group of rows whose first row is `row`.
template <class Traits>
COSMATI_DEVICE void store_group(
    typename Traits::Params const& params, DepthwiseRowsPlace const& at, int row, int column, int right,
    typename Traits::Sum (&sum)[Traits::shape.rows_out()][Traits::shape.run][Traits::shape.vector],
    bool complete) {
  using Real = typename Traits::Epilogue::Real;
  constexpr DepthwiseRowsShape shape = Traits::shape;
  DepthwiseRowsArguments const& all = params.all;
  COSMATI_UNROLL
  for (int k = 0; k < shape.rows_out(); ++k) {
    bool const exists = complete && static_cast<unsigned>(row + k) < static_cast<unsigned>(all.result_height);
    auto const to =
        Traits::Destination::at(params.d, at.image * all.result_image + at.channel * all.result_channel +
                                              (row + k) * all.result_row + column * Index{all.result_column});
    int const pixel = at.image * all.image_number + (row + k) * all.row_number;
    COSMATI_UNROLL
    for (int o = 0; o < shape.run; ++o) {
      Real value[shape.vector];
      COSMATI_UNROLL
      for (int v = 0; v < shape.vector; ++v) {
        value[v] = arch::number_cast<Real>(sum[k][o][v]);
      }
      if (!exists || static_cast<unsigned>(column + o * right) >= static_cast<unsigned>(all.result_width))
        continue;
      int const number = pixel + (column + o * right) * all.column_number;
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, all.swapped ? at.channel : number,
                                                     all.swapped ? number : at.channel);
      Traits::Epilogue::apply(epilogue, 0, 0, shape.vector, value);
      Traits::Destination::store(to, o * right * all.result_column, all.result_channel, value);
    }
  }
}

}  // namespace cosmati
