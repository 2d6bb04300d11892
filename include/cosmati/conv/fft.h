// The kernels of the convolution by Fourier transforms (Mathieu, Henaff and LeCun 2014), around transforms by
// a library and a batch of matrix products that gemm/ computes: tensors into planes, planes into the
// product's factors, its sums into planes, planes into results. Every kernel moves tiles of fft_side planes
// by fft_side positions; grid: (chunk.tiles * (planes / fft_side, rounded up)); block: fft_threads; dynamic
// shared memory: the traits' SharedStorage.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/digit_destination.h"
#include "cosmati/conv/fft_arguments.h"
#include "cosmati/conv/fft_doubled.h"
#include "cosmati/conv/tf32_rounding.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// How the kernels read elements of one type, and the matrices of the product.
template <class Element>
struct FftElements {
  template <class Real>
  COSMATI_DEVICE static Real load(void const* data, DataType, Index at) {
    return arch::number_cast<Real>(
        arch::load_constant<Element>(arch::as_global(static_cast<Element const*>(data)) + at));
  }
};

struct FftPlane {
  int group, outer, depth;
};
COSMATI_DEVICE FftPlane fft_plane(FftChunk const& chunk, int plane) {
  int const number = chunk.first + plane, upper = chunk.depths.quotient(number),
            group = chunk.outers.quotient(upper);
  return {group, upper - group * chunk.outers.divisor, number - upper * chunk.depths.divisor};
}

// The first plane and position of the block's tile.
struct FftTile {
  int plane, position;
};
COSMATI_DEVICE FftTile fft_tile(FftChunk const& chunk) {
  int const planes = chunk.tiles.quotient(arch::block_x());
  return {planes * fft_side, (arch::block_x() - planes * chunk.tiles.divisor) * fft_side};
}

// A tile of which a warp writes lines and reads columns; the odd pitch keeps lanes in banks of their own.
template <class Value>
struct FftShared {
  Value value[fft_side][fft_side + 1];
};

// Calls use(line, lane) for each place of a tile, lanes along a warp.
template <class Use>
COSMATI_DEVICE void for_each_of_tile(Use const& use) {
  constexpr int warps = fft_threads / 32;
  static_assert(fft_side == 32);
  COSMATI_UNROLL
  for (int i = 0; i < fft_side / warps; ++i) use(arch::thread() / 32 + i * warps, arch::thread() % 32);
}

// Tensor to planes, zeros where it has nothing. `across`: lanes lie along the planes when they read.
template <class From_, class Real_, bool across_>
struct FftPlanesTraits {
  using From = From_;
  using Real = Real_;
  static constexpr bool across = across_;
  using SharedStorage = FftShared<Real>;
};

template <class Traits>
COSMATI_DEVICE typename Traits::Real fft_element(FftPlanesParameters const& params, int plane, int position) {
  FftChunk const& chunk = params.chunk;
  if (plane >= chunk.count || position >= chunk.rows * chunk.pitch.divisor) return 0;
  int const row = chunk.pitch.quotient(position), column = position - row * chunk.pitch.divisor;
  int const r = params.row.step.quotient(row), s = params.column.step.quotient(column);
  if (column >= chunk.columns || r * params.row.step.divisor != row ||
      s * params.column.step.divisor != column || r >= params.row.most || s >= params.column.most)
    return 0;
  FftPlane const at = fft_plane(chunk, plane);
  Digits const outer = params.outer.extents.digits(at.outer), depth = params.depth.extents.digits(at.depth);
  int const down = params.row.origin + params.outer.down(outer) + params.depth.down(depth) + r;
  int const right = params.column.origin + params.outer.right(outer) + params.depth.right(depth) + s;
  if (static_cast<unsigned>(down) >= static_cast<unsigned>(params.row.size) ||
      static_cast<unsigned>(right) >= static_cast<unsigned>(params.column.size))
    return 0;
  return Traits::From::template load<typename Traits::Real>(
      params.from, params.type,
      at.group * params.group_stride + params.outer.offset(outer) + params.depth.offset(depth) +
          down * params.row.stride + right * params.column.stride);
}

template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_planes_kernel(COSMATI_PARAMETER FftPlanesParameters params) {
  using Real = typename Traits::Real;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile(chunk);
  Real* const planes = arch::as_global(static_cast<Real*>(chunk.planes));
  auto const store = [&](int plane, int position, Real value) {
    if (plane < chunk.count && position < chunk.rows * chunk.pitch.divisor)
      planes[plane * chunk.plane_reals() + position] = value;
  };
  if constexpr (Traits::across) {
    for_each_of_tile([&](int line, int lane) {
      shared.value[line][lane] = fft_element<Traits>(params, tile.plane + lane, tile.position + line);
    });
    arch::block_barrier();
  }
  for_each_of_tile([&](int line, int lane) {
    Real const value = Traits::across ? shared.value[lane][line]
                                      : fft_element<Traits>(params, tile.plane + line, tile.position + lane);
    store(tile.plane + line, tile.position + lane, value);
  });
}

// Planes to a factor. `twice`: each line is written twice, as the doubled factor's are.
template <class Real_, class Factor_, bool twice_, FftDoubled doubled_>
struct FftFactorTraits {
  using Real = Real_;
  using Factor = Factor_;
  static constexpr bool twice = twice_;
  static constexpr FftDoubled doubled = doubled_;
  using SharedStorage = FftShared<Vector<Real, 2>>;
};

template <class Real, class Factor>
COSMATI_DEVICE Factor fft_rounded(Real value) {
  if constexpr (is_same<Real, Factor>)
    return value;
  else
    return rounded_to<Factor>(value);
}

template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_factor_kernel(COSMATI_PARAMETER FftMatrixParameters params) {
  using Complex = Vector<typename Traits::Real, 2>;
  using Factor = typename Traits::Factor;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile(chunk);
  int const frequencies = chunk.frequencies();
  auto const exists = [&](int plane, int frequency) {
    return plane < chunk.count && frequency < frequencies;
  };
  Complex const* const planes = arch::as_global(static_cast<Complex const*>(chunk.planes));
  for_each_of_tile([&](int line, int lane) {
    int const plane = tile.plane + line, frequency = tile.position + lane;
    if (exists(plane, frequency))
      shared.value[line][lane] = arch::load<Complex>(planes + Index{plane} * frequencies + frequency);
  });
  arch::block_barrier();
  for_each_of_tile([&](int line, int lane) {
    int const plane = tile.plane + lane, frequency = tile.position + line;
    if (!exists(plane, frequency)) return;
    FftPlane const at = fft_plane(chunk, plane);
    Complex const value = shared.value[lane][line];
    Factor const real = fft_rounded<typename Traits::Real, Factor>(value[0]),
                 imaginary = fft_rounded<typename Traits::Real, Factor>(value[1]);
    Factor* const to = arch::as_global(static_cast<Factor*>(params.data)) +
                       (Index{frequency} * params.groups + at.group) * params.matrix_pitch +
                       at.outer * (Traits::twice ? 2 : 1) * params.pitch + 2 * at.depth;
    arch::store_global(to, Vector<Factor, 2>{{real, imaginary}});
    if constexpr (Traits::twice) {
      auto const negative = [](Factor number) {
        return fft_rounded<typename Traits::Real, Factor>(-static_cast<typename Traits::Real>(number));
      };
      arch::store_global(to + params.pitch, Traits::doubled == FftDoubled::image
                                                ? Vector<Factor, 2>{{imaginary, negative(real)}}
                                                : Vector<Factor, 2>{{negative(imaginary), real}});
    }
  });
}

// Sums to planes.
template <class Real_, FftDoubled doubled_>
struct FftSumsTraits {
  using Real = Real_;
  static constexpr FftDoubled doubled = doubled_;
  using SharedStorage = FftShared<Vector<Real, 2>>;
};
template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_sums_kernel(COSMATI_PARAMETER FftMatrixParameters params) {
  using Real = typename Traits::Real;
  using Complex = Vector<Real, 2>;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile(chunk);
  int const frequencies = chunk.frequencies();
  auto const exists = [&](int plane, int frequency) {
    return plane < chunk.count && frequency < frequencies;
  };
  for_each_of_tile([&](int line, int lane) {
    int const plane = tile.plane + lane, frequency = tile.position + line;
    if (!exists(plane, frequency)) return;
    FftPlane const at = fft_plane(chunk, plane);
    Real const* const from = arch::as_global(static_cast<Real const*>(params.data)) +
                             (Index{frequency} * params.groups + at.group) * params.matrix_pitch;
    if constexpr (Traits::doubled == FftDoubled::image) {
      Real const* const real = from + 2 * at.outer * params.pitch + at.depth;
      shared.value[line][lane] = {{real[0], real[params.pitch]}};
    } else {
      shared.value[line][lane] = arch::load<Complex>(from + at.outer * params.pitch + 2 * at.depth);
    }
  });
  arch::block_barrier();
  Complex* const planes = arch::as_global(static_cast<Complex*>(chunk.planes));
  for_each_of_tile([&](int line, int lane) {
    int const plane = tile.plane + line, frequency = tile.position + lane;
    if (exists(plane, frequency))
      arch::store_global(planes + Index{plane} * frequencies + frequency, shared.value[lane][line]);
  });
}

// Planes to results, with the epilogue. `across`: lanes lie along the planes when they write.
template <class Real_, bool across_, bool image_is_a_, class Epilogue_, class Destination_>
struct FftResultTraits {
  using Real = Real_;
  static constexpr bool across = across_, image_is_a = image_is_a_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = FftResultParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  using SharedStorage = FftShared<Real>;
};
template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_result_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Real = typename Traits::Real;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile(chunk);
  auto const load = [&](int plane, int output) -> Real {
    if (plane >= chunk.count || output >= params.tile_outputs) return 0;
    int const row = params.tile_columns.quotient(output), column = output - row * params.tile_columns.divisor;
    Real const* const from = arch::as_global(static_cast<Real const*>(chunk.planes));
    return from[plane * chunk.plane_reals() + row * params.row_step * chunk.pitch.divisor +
                column * params.column_step] *
           static_cast<Real>(params.scale);
  };
  auto const store = [&](int plane, int output, Real sum) {
    if (plane >= chunk.count || output >= params.tile_outputs) return;
    int const row = params.tile_columns.quotient(output), column = output - row * params.tile_columns.divisor;
    FftPlane const at = fft_plane(chunk, plane);
    Digits const outer = params.outer.extents.digits(at.outer);
    int const p = params.outer.down(outer) + row, q = params.outer.right(outer) + column;
    if (p >= params.rows || q >= params.columns) return;
    int const pixel = params.first_pixel + static_cast<int>(params.outer.offset(outer)) +
                      p * params.row_number + q * params.column_number;
    int const m = Traits::image_is_a ? pixel : at.depth, n = Traits::image_is_a ? at.depth : pixel;
    typename Traits::Epilogue::Real value[1] = {arch::number_cast<typename Traits::Epilogue::Real>(sum)};
    typename Traits::Epilogue::Tile const results(params.epilogue, at.group, m, n);
    Traits::Epilogue::apply(results, 0, 0, 1, value);
    typename Traits::Destination::Tile const d(params.d, at.group, m, n);
    d.store(0, 0, 1, value);
  };
  if constexpr (Traits::across) {
    for_each_of_tile([&](int line, int lane) {
      shared.value[line][lane] = load(tile.plane + line, tile.position + lane);
    });
    arch::block_barrier();
    for_each_of_tile([&](int line, int lane) {
      store(tile.plane + lane, tile.position + line, shared.value[lane][line]);
    });
  } else {
    for_each_of_tile([&](int line, int lane) {
      int const plane = tile.plane + line, output = tile.position + lane;
      store(plane, output, load(plane, output));
    });
  }
}

}  // namespace cosmati
