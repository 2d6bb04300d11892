// Copies the rows of an operand of 1- or 2-byte elements to a pitch of whole 16-byte units, as TMA requires.
// They may begin at any element, and may be short: a thread extracts a unit of the destination from the two
// aligned pieces that contain it, and adjacent threads have adjacent units, in whichever rows they are.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/operands/row_copy_arguments.h"
#include "cosmati/tile/shifted_run.h"

namespace cosmati {

template <class Element_>
struct RowCopyTraits {
  using Element = Element_;
};

// A unit of the destination: its first `valid` elements are from[0], from[column_stride], ...; the others are
// zeros.
template <class Element>
struct RowCopyUnit {
  ShiftedRun<Element> run;
  Element const* from;
  Element* to;
  int valid = 0;
};

// The memory of a matrix; none if elements may lie before the first one.
template <class Element>
COSMATI_DEVICE MemoryBounds<Element> bounds_of(RepackParameters const& params, Element const* base) {
  MatrixArguments const& from = params.from;
  if (from.row_stride < 0 || from.column_stride < 0) return {base, base};
  return {base, base + (params.rows - 1) * from.row_stride + (params.columns - 1) * from.column_stride + 1};
}

// Grid: (RowCopyBlock::blocks(), 1, matrices); block: RowCopyBlock::threads. The last unit of a row ends with
// zeros.
template <class Traits>
COSMATI_KERNEL(RowCopyBlock::threads, 4)
row_copy_kernel(COSMATI_PARAMETER RepackParameters params) {
  using Element = typename Traits::Element;
  constexpr int of_unit = 16 / static_cast<int>(sizeof(Element));
  Index const batch = params.first_batch + arch::block_z();
  auto const* const base = base_of<Element>(params.from, batch);
  MemoryBounds<Element> const bounds = bounds_of(params, base);
  Index const units_of_row = params.pitch / of_unit, first = Index{arch::block_x()} * RowCopyBlock::units;
  Index const first_row = first / units_of_row;
  int const begin = static_cast<int>(first - first_row * units_of_row) + arch::thread();
  int const of_row = static_cast<int>(units_of_row);
  RowCopyUnit<Element> unit[RowCopyBlock::units_of_thread];
  COSMATI_UNROLL
  for (int i = 0; i < RowCopyBlock::units_of_thread; ++i) {
    int const at = begin + i * RowCopyBlock::threads, below = at / of_row;
    Index const row = first_row + below, column = Index{at - below * of_row} * of_unit;
    if (row >= params.rows) continue;
    unit[i].from = base + row * params.from.row_stride + column * params.from.column_stride;
    unit[i].to = static_cast<Element*>(params.to) + batch * params.matrix_pitch + row * params.pitch + column;
    Index const rest = params.columns - column;
    unit[i].valid = static_cast<int>(rest < of_unit ? rest : of_unit);
    unit[i].run.load(unit[i].from, params.from.column_stride, unit[i].valid, bounds);
  }
  COSMATI_UNROLL
  for (int i = 0; i < RowCopyBlock::units_of_thread; ++i)
    if (unit[i].valid > 0)
      arch::store_global(unit[i].to,
                         unit[i].run.value(unit[i].from, params.from.column_stride, unit[i].valid));
}

}  // namespace cosmati
