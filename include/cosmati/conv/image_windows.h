// Forward convolutions and data gradients without strides by wgmma, for 16-bit types whose channels are
// contiguous: y[n, p, q, k] = sum over taps and channels of x[n, h, w, c] * w[k, r, s, c]. The producer
// copies the image around a tile of outputs by TMA once for all taps, in lines of 64 channels of a pixel, and
// the filter tap by tap. A product has 64 channels of the result as rows and a patch of outputs as columns:
// eight adjacent lines for each row of the patch, so that a tap is an offset in lines. If a
// block keeps the filter, all its tiles have the same channels of the result.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/warpgroup.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/image_windows_arguments.h"
#include "cosmati/gemm/epilogue.h"
#include "cosmati/gemm/ring.h"
#include "cosmati/tile/matrix_descriptor.h"

namespace cosmati {

template <ImageWindowsShape shape_, class Element_, class Epilogue_, class Destination_>
struct ImageWindowsTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = ImageWindowsParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr ImageWindowsShape shape = shape_;
  static constexpr int threads = shape.threads();
  static_assert(sizeof(Element) == 2, "a line has 64 channels of 16 bits");
  static_assert(shape.rows.step == 1 && shape.columns.step == 1, "outputs of a row read adjacent lines");
  static_assert(!shape.keeps_filter || shape.filter_stages == shape.taps(), "a stage keeps a tap");
  static_assert(!shape.alternates || shape.patches() == 1, "alternating warpgroups have single patches");

  struct SharedStorage {
    alignas(1024) unsigned char image[shape.image_stages][shape.image_bytes()];
    unsigned char filter[shape.filter_stages][ImageWindowsShape::filter_bytes];
    alignas(16) float staged[shape.consumers()][ImageWindowsShape::staged_pixels]
                            [ImageWindowsShape::staged_pitch];
    arch::Barrier image_full[shape.image_stages], image_empty[shape.image_stages];
    arch::Barrier filter_full[shape.filter_stages], filter_empty[shape.filter_stages];
    arch::Barrier turn[2];  // of warpgroups that alternate
  };
  static_assert(sizeof(SharedStorage) == shape.shared_bytes());
};

template <class Traits>
struct ImageWindows {
  using Shared = typename Traits::SharedStorage;
  using Element = typename Traits::Element;
  static constexpr ImageWindowsShape shape = Traits::shape;
  static constexpr int sum_count = shape.product_columns() / 2;
  static constexpr int line_bytes = ImageWindowsShape::line_bytes;

  typename Traits::Params const& params;
  ImageWindowsArguments const& window;

  // The first output of a tile.
  struct Tile {
    int image, row, column, channel;
  };
  COSMATI_DEVICE Tile tile(int number) const {
    int const place = window.parts.quotient(number), above = window.tiles_across.quotient(place),
              image = window.tiles_down.quotient(above);
    return {image, (above - image * window.tiles_down.divisor) * shape.down * shape.patch_rows,
            (place - above * window.tiles_across.divisor) * shape.across * ImageWindowsShape::patch_columns,
            (number - place * window.parts.divisor) * ImageWindowsShape::outputs};
  }

  // Executed by one thread.
  COSMATI_DEVICE void copy_images(Shared& shared) const {
    RingPlace<shape.image_stages> ring;
    COSMATI_NO_UNROLL
    for (int i = arch::block_x(); i < window.tiles; i += arch::grid_x()) {
      Tile const at = tile(i);
      COSMATI_NO_UNROLL
      for (int chunk = 0; chunk < window.chunks; ++chunk, ring.advance()) {
        arch::wait(shared.image_empty[ring.stage], ring.parity ^ 1);
        arch::Barrier& full = shared.image_full[ring.stage];
        arch::arrive_expecting(full, shape.copied_bytes());
        int const corner[4] = {chunk * ImageWindowsShape::line_channels, at.column + window.left,
                               at.row + window.top, at.image};
        arch::copy_tile(shared.image[ring.stage], window.image, full, corner);
      }
    }
  }

  // Executed by one thread.
  COSMATI_DEVICE void copy_filters(Shared& shared) const {
    RingPlace<shape.filter_stages> ring;
    COSMATI_NO_UNROLL
    for (int i = arch::block_x(); i < window.tiles; i += arch::grid_x()) {
      int const channel = tile(i).channel;
      COSMATI_NO_UNROLL
      for (int summed = 0; summed < window.chunks * ImageWindowsShape::line_channels;
           summed += ImageWindowsShape::line_channels) {
        COSMATI_NO_UNROLL
        for (int tap = 0; tap < shape.taps(); ++tap, ring.advance()) {
          int const number = shape.transposed ? shape.taps() - 1 - tap : tap;
          arch::wait(shared.filter_empty[ring.stage], ring.parity ^ 1);
          arch::Barrier& full = shared.filter_full[ring.stage];
          arch::arrive_expecting(full, ImageWindowsShape::filter_bytes);
          int const corner[4] = {shape.transposed ? channel : summed, shape.transposed ? summed : channel,
                                 number % shape.columns.taps, number / shape.columns.taps};
          arch::copy_tile(shared.filter[ring.stage], window.filter, full, corner);
        }
      }
      if constexpr (shape.keeps_filter) return;
    }
  }

  // Executed by a warpgroup, for its patch of every tile, or for every second tile.
  COSMATI_DEVICE void consume(Shared& shared, int consumer) const {
    int const patch = shape.alternates ? 0 : consumer, above = patch / shape.across;
    int const row = above * shape.patch_rows,
              column = (patch - above * shape.across) * ImageWindowsShape::patch_columns;
    Places at;
    if (shape.alternates && consumer == 1) skip_tile(at);
    int turns = 0;
    COSMATI_NO_UNROLL
    for (int i = arch::block_x() + (shape.alternates ? consumer * arch::grid_x() : 0); i < window.tiles;
         i += (shape.alternates ? 2 : 1) * arch::grid_x(), ++turns) {
      if constexpr (shape.alternates) arch::wait(shared.turn[consumer], (turns & 1) ^ (1 - consumer));
      float sums[sum_count];
      multiply(sums, shared, at, row * shape.image_columns() + column);
      if constexpr (shape.alternates) release(shared.turn[1 - consumer]);
      arch::warpgroup_wait<0>();
      arch::fence_registers(sums);
      if constexpr (!shape.keeps_filter) release(shared.filter_empty[at.last_filter]);
      release(shared.image_empty[at.last_image]);
      Tile first = tile(i);
      first.row += row, first.column += column;
      store(sums, shared, first);
      if constexpr (shape.alternates) skip_tile(at);
    }
  }

 private:
  // The stages of the next products, and those that products in flight read.
  struct Places {
    RingPlace<shape.image_stages> image;
    RingPlace<shape.filter_stages> filter;
    int last_image = 0, last_filter = 0;
  };

  COSMATI_DEVICE void skip_tile(Places& at) const {
    at.image.advance(window.chunks);
    if constexpr (!shape.keeps_filter) at.filter.advance(window.chunks * shape.taps());
  }

  COSMATI_DEVICE static void release(arch::Barrier& barrier) {
    arch::warp_barrier();
    if (arch::thread() % 32 == 0) arch::arrive(barrier);
  }

  // Starts the products of a tile, of a patch whose windows begin at `line`; the last ones are in flight.
  COSMATI_DEVICE void multiply(float (&sums)[sum_count], Shared& shared, Places& at, int line) const {
    constexpr bool transposed = shape.transposed;
    constexpr auto swizzle = Swizzle::bytes128;
    constexpr int filter_depth = (transposed ? 2 * pattern_bytes(swizzle) : 32) / 16, image_depth = 32 / 16;
    unsigned long long const filters =
        matrix_descriptor(arch::shared_address(shared.filter[0]),
                          strides_of_tile(ImageWindowsShape::outputs, transposed, swizzle), swizzle);
    unsigned long long const lines =
        matrix_descriptor(arch::shared_address(shared.image[0]) + static_cast<unsigned>(line * line_bytes),
                          {0, shape.image_columns() * line_bytes}, swizzle);
    bool is_first = true;
    COSMATI_NO_UNROLL
    for (int chunk = 0; chunk < window.chunks; ++chunk) {
      unsigned long long image = lines + static_cast<unsigned>(at.image.stage * (shape.image_bytes() / 16));
      arch::wait(shared.image_full[at.image.stage], at.image.parity);
      int column = 0;
      COSMATI_NO_UNROLL
      for (int tap = 0; tap < shape.taps(); ++tap, at.filter.advance()) {
        unsigned long long const filter =
            filters + static_cast<unsigned>(at.filter.stage * (ImageWindowsShape::filter_bytes / 16));
        arch::wait(shared.filter_full[at.filter.stage], shape.keeps_filter ? 0 : at.filter.parity);
        arch::warpgroup_begin();
        COSMATI_UNROLL
        for (int depth = 0; depth < ImageWindowsShape::line_channels / ImageWindowsShape::depth; ++depth)
          arch::multiply_warpgroup<Element, Element, transposed, false, shape.product_columns()>(
              sums, filter + static_cast<unsigned>(depth * filter_depth),
              image + static_cast<unsigned>(depth * image_depth), depth > 0 || !is_first);
        arch::warpgroup_commit();
        if (!is_first) {
          arch::warpgroup_wait<1>();
          if constexpr (!shape.keeps_filter) release(shared.filter_empty[at.last_filter]);
          if (tap == 0) release(shared.image_empty[at.last_image]);
        }
        is_first = false;
        at.last_filter = at.filter.stage;
        ++column;
        int const next = column == shape.columns.taps ? next_row() : shape.columns.dilation;
        column = column == shape.columns.taps ? 0 : column;
        image += static_cast<unsigned long long>(static_cast<long long>(next * (line_bytes / 16)));
      }
      at.last_image = at.image.stage;
      at.image.advance();
    }
  }
  // Lines from the last tap of a row to the first of the next.
  static COSMATI_CONSTEXPR int next_row() {
    return shape.rows.dilation * shape.image_columns() - (shape.columns.taps - 1) * shape.columns.dilation;
  }

  // Stores the results of a patch. The warpgroup passes four rows of outputs at a time through shared memory;
  // eight adjacent threads then have the 64 channels of a pixel.
  COSMATI_DEVICE void store(float const (&sums)[sum_count], Shared& shared, Tile const& first) const {
    using Real = typename Traits::Epilogue::Real;
    constexpr int run = 8, rows_at_once = ImageWindowsShape::staged_pixels / ImageWindowsShape::patch_columns,
                  pixels_at_once = 128 * run / ImageWindowsShape::outputs,
                  passes = ImageWindowsShape::staged_pixels / pixels_at_once;
    int const consumer = arch::uniform(arch::thread() / 128), thread = arch::thread() % 128,
              warp = thread / 32, lane = thread % 32;
    auto& staged = shared.staged[consumer];
    int const channel = thread % 8 * run;
    COSMATI_UNROLL
    for (int begin = 0; begin < shape.patch_rows; begin += rows_at_once) {
      arch::named_barrier(1 + consumer, 128);
      COSMATI_UNROLL
      for (int row = 0; row < rows_at_once; ++row) {
        if (begin + row >= shape.patch_rows) continue;
        COSMATI_UNROLL
        for (int i = 0; i < 4; ++i)
          staged[row * 8 + lane % 4 * 2 + i % 2][warp * 16 + lane / 4 + i / 2 * 8] =
              sums[(begin + row) * 4 + i];
      }
      arch::named_barrier(1 + consumer, 128);
      Real value[passes][run];
      COSMATI_UNROLL
      for (int pass = 0; pass < passes; ++pass) {
        COSMATI_UNROLL
        for (int c = 0; c < run; c += 4) {
          auto const four =
              arch::load<Vector<float, 4>>(&staged[pass * pixels_at_once + thread / 8][channel + c]);
          COSMATI_UNROLL
          for (int e = 0; e < 4; ++e) value[pass][c + e] = arch::number_cast<Real>(four[e]);
        }
      }
      COSMATI_UNROLL
      for (int pass = 0; pass < passes; ++pass) {
        int const pixel = pass * pixels_at_once + thread / 8, p = first.row + begin + pixel / 8,
                  q = first.column + pixel % 8;
        if (begin + pixel / 8 >= shape.patch_rows || p >= window.outputs_down || q >= window.outputs_across ||
            first.channel + channel >= window.outputs)
          continue;
        int const m = first.image * window.number_image + p * window.number_row + q * window.number_column;
        typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, first.channel + channel);
        Traits::Epilogue::apply(epilogue, 0, 0, run, value[pass]);
        typename Traits::Destination::Tile const d(params.d, 0, m, first.channel + channel);
        d.store(0, 0, run, value[pass]);
      }
    }
  }
};

// Grid: at most one block per multiprocessor; block: the consumers' warpgroups, then two producer warps.
// Dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
image_windows_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = ImageWindows<Traits>;
  constexpr ImageWindowsShape shape = Traits::shape;
  constexpr int releasing_warps = 4 * (shape.alternates ? 1 : shape.consumers());
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  if (arch::thread() == 0) {
    COSMATI_UNROLL
    for (int stage = 0; stage < shape.image_stages; ++stage) {
      arch::init(shared.image_full[stage], 1);
      arch::init(shared.image_empty[stage], releasing_warps);
    }
    COSMATI_UNROLL
    for (int stage = 0; stage < shape.filter_stages; ++stage) {
      arch::init(shared.filter_full[stage], 1);
      arch::init(shared.filter_empty[stage], releasing_warps);
    }
    for (auto& turn : shared.turn) arch::init(turn, 4);
    arch::publish_barriers();
  }
  arch::block_barrier();
  Block const block{params, params.window};
  if (int const consumer = arch::uniform(arch::thread() / 128); consumer < shape.consumers())
    block.consume(shared, consumer);
  else if (arch::thread() == 128 * shape.consumers())
    block.copy_images(shared);
  else if (arch::thread() == 128 * shape.consumers() + 32)
    block.copy_filters(shared);
}

}  // namespace cosmati
