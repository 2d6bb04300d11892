// Copies tensors into the planes of the convolution by Fourier transforms.
#pragma once
#include "cosmati/arch/convert.h"
#include "cosmati/conv/fft/fft_policy.h"
#include "cosmati/conv/fft/fft_tile.h"

namespace cosmati {

// Loads elements of a compile-time type.
template <class Element>
struct FftElements {
  template <class Real>
  COSMATI_DEVICE static Real load(void const* data, DataType, Index at) {
    return arch::number_cast<Real>(
        arch::load_constant<Element>(arch::as_global(static_cast<Element const*>(data)) + at));
  }
};

// Copies a tensor to planes, with zeros where it has no elements. Each block processes fft_positions
// positions.
struct FftPlaneStart {
  Index offset = 0;
  int down = 0, right = 0;  // position of the plane's first element; far outside if the plane does not exist
};
template <FftPlanesPolicy policy, class From_, class Real_>
struct FftPlanesTraits {
  using From = From_;
  using Real = Real_;
  static constexpr bool across = policy.across;
  using SharedStorage = FftShared<Real, FftPlaneStart>;
  static_assert(sizeof(SharedStorage) <= fft_shared_bytes(sizeof(Real), 1));
};

COSMATI_DEVICE FftPlaneStart fft_plane_start(FftPlanesParameters const& params, int plane) {
  constexpr int far = -(1 << 30);
  if (plane >= params.chunk.count) return {0, far, far};
  FftPlane const at = fft_plane(params.chunk, plane);
  Digits const outer = params.outer.extents.digits(at.outer), depth = params.depth.extents.digits(at.depth);
  return {at.group * params.group_stride + params.outer.offset(outer) + params.depth.offset(depth),
          params.row.origin + params.outer.down(outer) + params.depth.down(depth),
          params.column.origin + params.outer.right(outer) + params.depth.right(depth)};
}

// The tensor element at a position, relative to the plane's first; far outside the tensor if there is none.
struct FftSpot {
  int down, right;
};
COSMATI_DEVICE FftSpot fft_spot(FftPlanesParameters const& params, int position) {
  constexpr int far = -(1 << 30);
  int const row = params.chunk.pitch.quotient(position), column = position - row * params.chunk.pitch.divisor;
  int const r = params.row.step.quotient(row), s = params.column.step.quotient(column);
  bool const exists = row < params.chunk.rows && column < params.chunk.columns &&
                      r * params.row.step.divisor == row && s * params.column.step.divisor == column &&
                      r < params.row.maximum && s < params.column.maximum;
  return {exists ? r : far, s};
}

template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_planes_kernel(COSMATI_PARAMETER FftPlanesParameters params) {
  using Real = typename Traits::Real;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile<fft_positions>(chunk);
  int const warp = arch::thread() / 32, lane = arch::thread() % 32,
            positions = chunk.rows * chunk.pitch.divisor;
  if (arch::thread() < fft_side)
    shared.start[arch::thread()] = fft_plane_start(params, tile.plane + arch::thread());
  arch::block_barrier();
  Real* const planes = arch::as_global(static_cast<Real*>(chunk.planes)) + tile.plane * chunk.plane_reals();
  COSMATI_NO_UNROLL
  for (int first = tile.position; first < tile.position + fft_positions && first < positions;
       first += fft_side) {
    Real value[fft_lines];
    COSMATI_UNROLL
    for (int i = 0; i < fft_lines; ++i) {
      int const line = warp + i * fft_warps;
      FftPlaneStart const& start = shared.start[Traits::across ? lane : line];
      FftSpot const spot = fft_spot(params, first + (Traits::across ? line : lane));
      int const down = start.down + spot.down, right = start.right + spot.right;
      bool const inside = static_cast<unsigned>(down) < static_cast<unsigned>(params.row.size) &&
                          static_cast<unsigned>(right) < static_cast<unsigned>(params.column.size);
      value[i] = inside ? Traits::From::template load<Real>(
                              params.from, params.type,
                              start.offset + down * params.row.stride + right * params.column.stride)
                        : Real{};
    }
    if constexpr (Traits::across) fft_transpose(shared, value);
    COSMATI_UNROLL
    for (int i = 0; i < fft_lines; ++i) {
      int const line = warp + i * fft_warps;
      if (tile.plane + line < chunk.count && first + lane < positions)
        planes[line * chunk.plane_reals() + first + lane] = value[i];
    }
  }
}

}  // namespace cosmati
