// Loads tiles of one operand into shared memory without rearrangement, in padded lines: through registers, or
// by cp.async if 16, 8 or 4 bytes are aligned.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/tile/operand_loader.h"
#include "cosmati/tile/padded_tile.h"

namespace cosmati {

template <class Source, class Tile, int threads, bool whole>
class PaddedLoader {
  using Element = typename Source::Element;
  static constexpr int width = imin(Source::width, 16 / Tile::size);
  static constexpr PieceShape shape = piece_shape(Tile::line_bytes, Tile::padding, width* Tile::size);
  static constexpr int pieces = Tile::lines * (Tile::line_bytes / shape.bytes);
  static constexpr int pieces_per_thread = (pieces + threads - 1) / threads;
  // A thread's pieces are a multiple of a band apart (by_bands), or several are in one line (by_parts).
  static constexpr int band = shape.pieces_of_band();
  static constexpr bool by_bands = threads % band == 0,
                        by_parts = shape.lines_deep == 1 && band % threads == 0;
  static constexpr bool has_one_depth = Source::along == Along::k && by_bands;
  static_assert(Tile::lines % shape.lines_deep == 0, "the lines of a tile must be a multiple of lines_deep");
  // If a thread copies many single elements, their addresses would not fit in registers and are recomputed.
  static constexpr bool keeps_rows = pieces_per_thread <= 8;

 public:
  static constexpr bool by_copies = shape.bytes >= 4;

  COSMATI_DEVICE PaddedLoader(Source const& source, int thread) : source_(source), thread_(thread) {
    own_ = piece_place(shape, thread);
    if constexpr (keeps_rows) {
      COSMATI_UNROLL
      for (int v = 0; v < pieces_per_thread; ++v) rows_[v] = row_of(place_of(own_, v));
    }
  }

  // Loads from global memory to registers.
  COSMATI_DEVICE void fetch(Index first_depth) {
    auto const step = step_of_thread<has_one_depth>(source_, first_depth, own_.byte / Tile::size);
    PiecePlace own = own_;
    if constexpr (!keeps_rows) arch::fence_registers(own.line);
    COSMATI_UNROLL
    for (int v = 0; v < pieces_per_thread; ++v)
      if (exists(v)) fetch_run<whole>(element_[v], run_of(own, v, step));
  }

  // Stores from registers to shared memory.
  COSMATI_DEVICE void store(Tile& tile) const {
    COSMATI_UNROLL
    for (int v = 0; v < pieces_per_thread; ++v)
      if (exists(v)) arch::store(to(tile, v), element_[v]);
  }

  // Copies from global to shared memory: asynchronously, in a commit group that the caller closes and waits
  // for, or, without cp.async, immediately.
  COSMATI_DEVICE void copy(Tile& tile, Index first_depth) {
    if constexpr (by_copies) {
      auto const step = step_of_thread<has_one_depth>(source_, first_depth, own_.byte / Tile::size);
      PiecePlace own = own_;
      if constexpr (!keeps_rows) arch::fence_registers(own.line);
      COSMATI_UNROLL
      for (int v = 0; v < pieces_per_thread; ++v)
        if (exists(v)) {
          auto const run = run_of(own, v, step);
          arch::copy_async<shape.bytes>(to(tile, v), run.address, imin(run.valid, width) * Tile::size);
        }
    } else {
      fetch(first_depth);
      store(tile);
    }
  }

 private:
  COSMATI_DEVICE bool exists(int v) const { return pieces % threads == 0 || thread_ + v * threads < pieces; }
  COSMATI_DEVICE PiecePlace place_of(PiecePlace own, int v) const {
    if constexpr (by_bands) {
      return {own.line + v * (threads / band * shape.lines_deep), own.byte};
    } else if constexpr (by_parts) {
      constexpr int parts = band / threads;
      return {own.line + v / parts, own.byte + v % parts * (threads * shape.bytes)};
    } else {
      return piece_place(shape, thread_ + v * threads);
    }
  }
  COSMATI_DEVICE typename Source::Row row_of(PiecePlace const& place) const {
    int const along = place.byte / Tile::size;
    return Source::along == Along::k ? source_.row(place.line, along) : source_.row(along, place.line);
  }
  template <class Step>
  COSMATI_DEVICE auto run_of(PiecePlace const& own, int v, Step const& step) const {
    if constexpr (keeps_rows)
      return source_.template run<whole>(rows_[v], step, 0);
    else
      return source_.template run<whole>(row_of(place_of(own, v)), step, 0);
  }
  COSMATI_DEVICE unsigned char* to(Tile& tile, int v) const {
    PiecePlace const place = place_of(own_, v);
    return &tile.bytes[0][0] + place.line * Tile::pitch + place.byte;
  }

  Source source_;
  int thread_;
  PiecePlace own_;  // position of the thread's first piece
  typename Source::Row rows_[keeps_rows ? pieces_per_thread : 1];
  Vector<Element, width> element_[pieces_per_thread];
};

}  // namespace cosmati
