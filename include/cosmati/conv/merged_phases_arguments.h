// Launch parameters of the product that computes the four phases of a data gradient with stride 2 in one
// tile.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// The taps of the two phases along an axis. All taps belong to the larger phase. Those at which the smaller
// phase has one as well are consecutive; in that phase, the index of such a tap is smaller by `first_shared`.
struct MergedAxis {
  int shared = 0, first_shared = 0;
  int single = 0;  // taps of the larger phase only

  COSMATI_CONSTEXPR int count(bool of_both) const { return of_both ? shared : single; }
  // Tap i of the shared ones, or of the others.
  COSMATI_CONSTEXPR int tap(bool of_both, int i) const {
    return of_both ? first_shared + i : i < first_shared ? i : i + shared;
  }
};

// phase[]: larger rows and columns; smaller rows, larger columns; larger rows, smaller columns; smaller rows
// and columns.
inline constexpr int merged_phases = 4, largest_phase = 0;
COSMATI_CONSTEXPR bool has_larger_rows(int phase) { return phase % 2 == 0; }
COSMATI_CONSTEXPR bool has_larger_columns(int phase) { return phase < 2; }

// Four kinds of taps, by whether both phases of the rows, and of the columns, have them.
inline constexpr int tap_kinds = 4;
struct TapKind {
  bool both_rows, both_columns;
  COSMATI_CONSTEXPR bool has(int phase) const {
    return (both_rows || has_larger_rows(phase)) && (both_columns || has_larger_columns(phase));
  }
  COSMATI_CONSTEXPR int phases() const { return (both_rows ? 2 : 1) * (both_columns ? 2 : 1); }
};
COSMATI_CONSTEXPR TapKind tap_kind(int kind) { return {kind < 2, kind % 2 == 0}; }

COSMATI_CONSTEXPR int taps_of(TapKind const& kind, MergedAxis const& rows, MergedAxis const& columns) {
  return rows.count(kind.both_rows) * columns.count(kind.both_columns);
}

// All phases have m rows and n columns.
template <class Params>
struct MergedPhasesParameters {
  MergedAxis rows, columns;
  Params phase[merged_phases];
};

}  // namespace cosmati
