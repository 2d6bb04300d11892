// y = x for tensors that are contiguous along different dimensions: tiles through shared memory, with
// contiguous reads and writes.
#pragma once
#include "cosmati/primitive/traits.h"

namespace cosmati {

// A block transposes a tile of `along_x` by `along_y` elements, divided into cells of width by width: a
// thread loads a run that is contiguous in x from each line of a cell, and stores runs that are contiguous in
// y to shared memory.
template <class Traits>
struct TransposeTile {
  using Real = typename Traits::Real;
  static constexpr int width = Traits::width;
  static constexpr int along_x = 64 * Traits::along, along_y = 64 * Traits::unroll;
  static constexpr int units_x = along_x / width, units_y = along_y / width;  // runs
  using Run = Vector<Real, width>;
  struct SharedStorage {
    Run run[along_x][units_y];  // (along x, along y / width)
  };
  static constexpr int turns = units_x < units_y ? units_x : units_y;
  // Lanes that store have adjacent cells of one line, lanes that load have adjacent runs: both without bank
  // conflicts.
  COSMATI_DEVICE static int place_of(int x, int unit_y) { return unit_y ^ (x / width % turns); }

  // Cell or run number `i` of this thread; its column and line, in cells.
  COSMATI_DEVICE static unsigned number_of(int i) {
    return static_cast<unsigned>(arch::thread() + i * Traits::threads);
  }
  COSMATI_DEVICE static int column_of(int i) { return static_cast<int>(number_of(i) % units_x); }
  COSMATI_DEVICE static int unit_of(int i) { return static_cast<int>(number_of(i) / units_x); }
};

// Axis 0: contiguous in y, axis 1: contiguous in x (both divided into tiles), then the others. Strides of
// axes 0 and 1 are in elements; all strides but the unit strides are multiples of a run. window[0].image and
// window[1].image: the extents along axes 0 and 1. Grid: (tiles, positions of the other axes).
template <class Traits>
COSMATI_KERNEL(Traits::threads, 4)
transpose_kernel(COSMATI_PARAMETER PrimitiveParameters params) {
  using Real = typename Traits::Real;
  using Tile = TransposeTile<Traits>;
  using From = typename AccessAt<0, typename Traits::Inputs>::type;
  using To = typename AccessAt<0, typename Traits::Outputs>::type;
  constexpr int width = Traits::width, threads = Traits::threads;
  constexpr int cells = Tile::units_x * Tile::units_y / threads;  // per thread
  constexpr int runs = Tile::along_x * Tile::units_y / threads;
  static_assert(cells > 0 && Tile::units_y % Tile::turns == 0);
  auto& tile = arch::shared_storage<typename Tile::SharedStorage>();
  auto const number = static_cast<unsigned>(arch::block_x());
  unsigned const rest = params.axis[0].quotient(number);  // divided by the tiles along axis 0
  unsigned const others = params.axis[1].quotient(rest);
  Place const place(params.axis + 2, Traits::policy(params).kept - 2, others);
  Index const first0 =
      static_cast<Index>(number - rest * static_cast<unsigned>(params.axis[0].divisor)) * Tile::along_y;
  Index const first1 =
      static_cast<Index>(rest - others * static_cast<unsigned>(params.axis[1].divisor)) * Tile::along_x;
  PrimitiveTensor const &x = params.tensor[0], &y = params.tensor[primitive_inputs];
  Index const left0 = params.window[0].image - first0, left1 = params.window[1].image - first1;
  bool const whole = Traits::policy(params).whole;
  auto const there = [whole](Index left) {  // existing elements of a run
    return whole || left >= width ? width : static_cast<int>(left);
  };

  Index const from = place.offset(x.stride + 2) + first0 * x.stride[0] + first1;
  Real in[cells][width][width];  // (cell, line, element)
  COSMATI_UNROLL
  for (int i = 0; i < cells; ++i) {
    int const column = Tile::column_of(i) * width, line = Tile::unit_of(i) * width;
    COSMATI_UNROLL
    for (int e = 0; e < width; ++e)
      if (line + e < left0 && column < left1)
        From::load(params, x,
                   ContiguousRange{from + (line + e) * x.stride[0] + column, there(left1 - column)},
                   in[i][e]);
  }
  COSMATI_UNROLL
  for (int i = 0; i < cells; ++i) {
    int const column = Tile::column_of(i) * width, unit = Tile::unit_of(i);
    COSMATI_UNROLL
    for (int c = 0; c < width; ++c) {
      typename Tile::Run run;
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e) run[e] = in[i][e][c];
      tile.run[column + c][Tile::place_of(column + c, unit)] = run;
    }
  }
  arch::block_barrier();
  Index const to = place.offset(y.stride + 2) + first0 + first1 * y.stride[1];
  COSMATI_UNROLL
  for (int i = 0; i < runs; ++i) {
    unsigned const number_of_run = Tile::number_of(i);
    auto const unit = static_cast<int>(number_of_run % Tile::units_y),
               line = static_cast<int>(number_of_run / Tile::units_y);
    if (line >= left1 || unit * width >= left0) continue;
    To::store(y, ContiguousRange{to + unit * width + line * y.stride[1], there(left0 - unit * width)},
              tile.run[line][Tile::place_of(line, unit)].element);
  }
}

}  // namespace cosmati
