// The kernels of the convolution by Fourier transforms (Mathieu, Henaff and LeCun 2014). The transforms come
// from a library, and the batch of matrix products is computed by gemm/; these kernels copy tensors into
// planes, planes into the product's factors, its sums into planes, and planes into results. Each of them
// moves tiles of fft_side planes by fft_side positions; grid: (chunk.tiles * ceil(planes / fft_side)); block:
// fft_threads; dynamic shared memory: the traits' SharedStorage.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/fft/fft_planes.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

// Copies planes to a factor.
template <FftFactorPolicy policy, class Real_, class Factor_>
struct FftFactorTraits {
  using Real = Real_;
  using Factor = Factor_;
  static constexpr bool twice = policy.twice;
  static constexpr FftDoubled doubled = policy.doubled;
  using SharedStorage = FftTransposed<Vector<Real, 2>>;
  static_assert(sizeof(SharedStorage) <= fft_shared_bytes(sizeof(Real), 2));
};

template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_factor_kernel(COSMATI_PARAMETER FftMatrixParameters params) {
  using Complex = Vector<typename Traits::Real, 2>;
  using Factor = typename Traits::Factor;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile<fft_side>(chunk);
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
    Factor const real = arch::number_cast<Factor>(value[0]), imaginary = arch::number_cast<Factor>(value[1]);
    Factor* const to = arch::as_global(static_cast<Factor*>(params.data)) +
                       (Index{frequency} * params.groups + at.group) * params.matrix_pitch +
                       at.outer * (Traits::twice ? 2 : 1) * params.pitch + 2 * at.depth;
    arch::store_global(to, Vector<Factor, 2>{{real, imaginary}});
    if constexpr (Traits::twice) {
      auto const negative = [](Factor number) {
        return arch::number_cast<Factor>(-static_cast<typename Traits::Real>(number));
      };
      arch::store_global(to + params.pitch, Traits::doubled == FftDoubled::image
                                                ? Vector<Factor, 2>{{imaginary, negative(real)}}
                                                : Vector<Factor, 2>{{negative(imaginary), real}});
    }
  });
}

// Copies sums to planes.
template <FftSumsPolicy policy, class Real_>
struct FftSumsTraits {
  using Real = Real_;
  static constexpr FftDoubled doubled = policy.doubled;
  using SharedStorage = FftTransposed<Vector<Real, 2>>;
  static_assert(sizeof(SharedStorage) <= fft_shared_bytes(sizeof(Real), 2));
};
template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_sums_kernel(COSMATI_PARAMETER FftMatrixParameters params) {
  using Real = typename Traits::Real;
  using Complex = Vector<Real, 2>;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile<fft_side>(chunk);
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

// Multiplies planes by the conjugates of the filters' planes, in place.
template <class Real_>
struct FftProductTraits {
  using Real = Real_;
};
template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_product_kernel(COSMATI_PARAMETER FftProductParameters params) {
  using Complex = Vector<typename Traits::Real, 2>;
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile<fft_side>(chunk);
  int const frequencies = chunk.frequencies();
  Complex* const planes = arch::as_global(static_cast<Complex*>(chunk.planes));
  Complex const* const filter = arch::as_global(static_cast<Complex const*>(params.filter));
  for_each_of_tile([&](int line, int lane) {
    int const plane = tile.plane + line, frequency = tile.position + lane;
    if (plane >= chunk.count || frequency >= frequencies) return;
    Complex* const place = planes + Index{plane} * frequencies + frequency;
    Complex const x = arch::load<Complex>(place),
                  w = arch::load_constant<Complex>(
                      filter + Index{fft_plane(chunk, plane).group} * frequencies + frequency);
    arch::store_global(place, Complex{{arch::multiply_add(x[0], w[0], x[1] * w[1]),
                                       arch::multiply_add(x[1], w[0], -(x[0] * w[1]))}});
  });
}

// Copies planes to results, with the epilogue. Each block processes fft_positions outputs.
struct FftResultStart {
  int group = 0, other = 0, pixel = 0;
  int row = 0, column = 0;  // of the first output; beyond all outputs if the plane does not exist
};
template <FftResultPolicy policy, class Real_, class Epilogue_, class Destination_>
struct FftResultTraits {
  using Real = Real_;
  static constexpr bool across = policy.across, image_is_a = policy.image_is_a;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = FftResultParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  using SharedStorage = FftShared<Real, FftResultStart>;
  static_assert(sizeof(SharedStorage) <= fft_shared_bytes(sizeof(Real), 1));
};

template <class Params>
COSMATI_DEVICE FftResultStart fft_result_start(Params const& params, int plane) {
  if (plane >= params.chunk.count) return {0, 0, 0, params.rows, params.columns};
  FftPlane const at = fft_plane(params.chunk, plane);
  Digits const outer = params.outer.extents.digits(at.outer);
  return {at.group, at.depth, params.first_pixel + static_cast<int>(params.outer.offset(outer)),
          params.outer.down(outer), params.outer.right(outer)};
}

template <class Traits>
COSMATI_KERNEL(fft_threads, 4)
fft_result_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Real = typename Traits::Real;
  using EpilogueReal = typename Traits::Epilogue::Real;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  FftChunk const& chunk = params.chunk;
  FftTile const tile = fft_tile<fft_positions>(chunk);
  int const warp = arch::thread() / 32, lane = arch::thread() % 32;
  if (arch::thread() < fft_side)
    shared.start[arch::thread()] = fft_result_start(params, tile.plane + arch::thread());
  arch::block_barrier();
  Real const* const planes =
      arch::as_global(static_cast<Real const*>(chunk.planes)) + tile.plane * chunk.plane_reals();
  Real const scale = static_cast<Real>(params.scale);
  COSMATI_NO_UNROLL
  for (int first = tile.position; first < tile.position + fft_positions && first < params.tile_outputs;
       first += fft_side) {
    Real value[fft_lines];
    COSMATI_UNROLL
    for (int i = 0; i < fft_lines; ++i) {
      int const line = warp + i * fft_warps, output = first + lane;
      int const row = params.tile_columns.quotient(output),
                column = output - row * params.tile_columns.divisor;
      bool const exists = tile.plane + line < chunk.count && output < params.tile_outputs;
      value[i] =
          exists ? scale * planes[line * chunk.plane_reals() + row * params.row_step * chunk.pitch.divisor +
                                  column * params.column_step]
                 : Real{};
    }
    if constexpr (Traits::across) fft_transpose(shared, value);
    COSMATI_UNROLL
    for (int i = 0; i < fft_lines; ++i) {
      int const line = warp + i * fft_warps, output = first + (Traits::across ? line : lane);
      FftResultStart const& start = shared.start[Traits::across ? lane : line];
      int const row = params.tile_columns.quotient(output),
                column = output - row * params.tile_columns.divisor;
      int const p = start.row + row, q = start.column + column;
      if (output >= params.tile_outputs || p >= params.rows || q >= params.columns) continue;
      int const pixel = start.pixel + p * params.row_number + q * params.column_number;
      int const m = Traits::image_is_a ? pixel : start.other, n = Traits::image_is_a ? start.other : pixel;
      EpilogueReal result[1] = {arch::number_cast<EpilogueReal>(value[i])};
      typename Traits::Epilogue::Tile const epilogue(params.epilogue, start.group, m, n);
      Traits::Epilogue::apply(epilogue, 0, 0, 1, result);
      typename Traits::Destination::Tile const d(params.d, start.group, m, n);
      d.store(0, 0, 1, result);
    }
  }
}

}  // namespace cosmati
