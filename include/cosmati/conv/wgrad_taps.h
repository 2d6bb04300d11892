// The filter gradient by wgmma with all taps from one copy of x: dw[k, c, r, s] = sum of dy[n, p, q, k] *
// x[n, h, w, c], for tensors of 16-bit types whose channels are contiguous. A block keeps the sums of 64
// filters and 64 channels for up to 3 x 3 taps, one warpgroup for each column of taps. Its producer copies
// rows of dy and the rows of x around them by TMA, in lines of 64 channels of a pixel. Pixels are k of the
// product, so a tap is an offset in lines of x. Groups of few channels share a block, which stores only the
// sums within a group. wgrad_taps_sum.h adds the blocks' sums in a fixed order.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/warpgroup.h"
#include "cosmati/conv/wgrad_taps_arguments.h"
#include "cosmati/conv/wgrad_taps_shape.h"
#include "cosmati/gemm/ring.h"
#include "cosmati/tile/matrix_descriptor.h"

namespace cosmati {

template <class Element_, WgradTapsShape shape_>
struct WgradTapsTraits {
  using Element = Element_;
  using Params = WgradTapsParameters;
  static constexpr WgradTapsShape shape = shape_;
  static constexpr int columns = wgrad_taps_channels * shape.rows.taps;  // of a product
  static_assert(sizeof(Element) == 2, "wgmma reads MN-major operands only with 16-bit elements");
  static_assert(shape.across % 8 == 0 && (!shape.pairs_images() || shape.images % 2 == 0),
                "a product covers 16 outputs, in two groups of 8");
  static_assert(shape.columns.stride <= 2, "x is divided into at most two phases");

  template <int lines>
  struct Lines {
    alignas(1024) unsigned char zeros[8][wgrad_taps_line];
    unsigned char line[lines][wgrad_taps_line];
  };
  struct Stage {
    Lines<shape.gradient_lines()> gradient;
    Lines<shape.image_lines()> image[shape.phases()];
  };
  struct SharedStorage {
    Stage stage[shape.stages];
    arch::Barrier full[shape.stages], empty[shape.stages];
  };
  static_assert(sizeof(Stage) == shape.stage_bytes() && sizeof(SharedStorage) == shape.shared_bytes());
};

template <class Traits>
struct WgradTaps {
  using Params = WgradTapsParameters;
  using Shared = typename Traits::SharedStorage;
  using Element = typename Traits::Element;
  static constexpr WgradTapsShape shape = Traits::shape;
  static constexpr int sum_count = Traits::columns / 2;

  // The tile of a block, and its part of the steps.
  struct Work {
    WgradTapsTile tile;
    int part, first, last;
    COSMATI_DEVICE explicit Work(Params const& all) {
      part = all.tile_count.quotient(arch::block_x());
      tile = all.tiles.tile(arch::block_x() - part * all.tile_count.divisor);
      first = static_cast<int>(Index{all.steps} * part / all.parts);
      last = static_cast<int>(Index{all.steps} * (part + 1) / all.parts);
    }
  };
  struct Step {
    int column, row, image;
    COSMATI_DEVICE Step(Params const& all, int step) {
      int const above = all.chunks.quotient(step), images = all.bands.quotient(above);
      column = (step - above * all.chunks.divisor) * shape.across;
      row = (above - images * all.bands.divisor) * shape.down;
      image = images * shape.images;
    }
  };

  // For a tap, output 0 pairs with column column_of() of phase phase_of() of x.
  COSMATI_DEVICE static int column_of(Params const& all, int tap) {
    return (all.left + tap * shape.columns.dilation) >> (shape.columns.stride - 1);
  }
  COSMATI_DEVICE static int phase_of(Params const& all, int tap) {
    return (all.left + tap * shape.columns.dilation) & (shape.columns.stride - 1);
  }

  // Executed by one thread.
  COSMATI_DEVICE static void produce(Shared& shared, Params const& all, Work const& work) {
    int const first_row = all.top + work.tile.row * shape.rows.dilation;
    int const first_column = column_of(all, work.tile.column);
    RingPlace<shape.stages> ring;
    COSMATI_NO_UNROLL
    for (int i = work.first; i < work.last; ++i, ring.advance()) {
      Step const step(all, i);
      arch::wait(shared.empty[ring.stage], ring.parity ^ 1);
      arch::Barrier& full = shared.full[ring.stage];
      auto& stage = shared.stage[ring.stage];
      arch::arrive_expecting(full, shape.copied_bytes());
      int const of_gradient[4] = {work.tile.filter, step.column, step.row, step.image};
      arch::copy_tile(stage.gradient.line, all.gradient, full, of_gradient);
      int const of_image[4] = {work.tile.channel, step.column + first_column,
                               step.row * shape.rows.stride + first_row, step.image};
      COSMATI_UNROLL
      for (int phase = 0; phase < shape.phases(); ++phase)
        arch::copy_tile(stage.image[phase].line, all.image[phase], full, of_image);
    }
  }

  // Executed by a warpgroup, for a column of taps: m = filters, n = (r, channel), k = outputs. In the
  // descriptor of x, the columns of different r are `dilation` rows of x apart.
  COSMATI_DEVICE static void consume(Shared& shared, Params const& all, Work const& work, int group) {
    int const tap = work.tile.column + group;
    int const before = tap < all.leading_taps ? all.lead : 0;
    int const column = column_of(all, tap) - column_of(all, work.tile.column);
    auto const& lines = shared.stage[0].gradient;
    auto const& image_lines = shared.stage[0].image[phase_of(all, tap)];
    constexpr int next_row = shape.rows.dilation * shape.image_columns();
    unsigned long long const gradient = descriptor(lines.line, -before, next_row, shape.gradient_pair()),
                             image =
                                 descriptor(image_lines.line, column - before, next_row, shape.image_pair());
    float sums[sum_count] = {};
    RingPlace<shape.stages> ring;
    int last_stage = 0;
    COSMATI_NO_UNROLL
    for (int i = work.first; i < work.last; ++i, ring.advance()) {
      Step const step(all, i);
      int const rows = all.outputs_down - step.row < shape.down ? all.outputs_down - step.row : shape.down;
      arch::wait(shared.full[ring.stage], ring.parity);
      unsigned const stage = static_cast<unsigned>(ring.stage * (shape.stage_bytes() / 16));
      arch::warpgroup_begin();
      multiply(sums, gradient + stage, image + stage, rows);
      if constexpr (shape.has_odd_rows)
        if (rows % 2 != 0) {
          finish(sums);  // products of another shape follow
          arch::warpgroup_begin();
          multiply_last(sums, descriptor(lines.zeros, 0, 0, 0) + stage,
                        descriptor(image_lines.zeros, 0, 0, 0) + stage, rows - 1, before, column);
          finish(sums);
        }
      arch::warpgroup_commit();
      arch::warpgroup_wait<1>();
      if (i > work.first) release(shared.empty[last_stage]);
      last_stage = ring.stage;
    }
    arch::warpgroup_wait<0>();
    arch::fence_registers(sums);
    store(sums, all, work.tile, group);
  }

 private:
  COSMATI_DEVICE static unsigned long long descriptor(void const* lines, int first, int leading, int stride) {
    return matrix_descriptor(arch::shared_address(lines) + static_cast<unsigned>(first * wgrad_taps_line),
                             {leading * wgrad_taps_line, stride * wgrad_taps_line}, Swizzle::bytes128);
  }

  COSMATI_DEVICE static void release(arch::Barrier& empty) {
    if (arch::thread() % 32 == 0) arch::arrive(empty);
  }

  COSMATI_DEVICE static void finish(float (&sums)[sum_count]) {
    arch::warpgroup_commit();
    arch::warpgroup_wait<0>();
    arch::fence_registers(sums);
  }

  // Multiplies the first `rows` rows of each image. Rows beyond the last are skipped: x may exist there, and
  // infinity times a zero of dy is not zero. If rows are multiplied in pairs, there are at least two.
  COSMATI_DEVICE static void multiply(float (&sums)[sum_count], unsigned long long gradient,
                                      unsigned long long image, int rows) {
    constexpr int step_images = shape.pairs_images() ? 2 : 1, step_rows = shape.pairs_rows() ? 2 : 1,
                  step_columns = shape.pairs_columns() ? 16 : 8;
    int row = 0;
    COSMATI_NO_UNROLL
    do {  // at least once, so that the compiler does not wait for the products of each iteration
      unsigned const from_gradient = units(gradient_line(0, row)), from_image = units(image_line(0, row));
      COSMATI_UNROLL
      for (int n = 0; n < shape.images; n += step_images) {
        COSMATI_UNROLL
        for (int q = 0; q < shape.across; q += step_columns)
          arch::multiply_warpgroup<Element, Element, true, true, Traits::columns>(
              sums, gradient + from_gradient + units(gradient_line(n, 0) + q),
              image + from_image + units(image_line(n, 0) + q), true);
      }
      row += step_rows;
    } while (row + step_rows <= rows);
  }

  // Multiplies the last row of an odd number of rows that are multiplied in pairs: the first 8 of 16 outputs
  // are the zeros that precede the lines; the descriptor's stride leads from them to the other 8.
  COSMATI_DEVICE static void multiply_last(float (&sums)[sum_count], unsigned long long gradient_zeros,
                                           unsigned long long image_zeros, int row, int before, int column) {
    auto const with_stride = [](int lines) {
      return static_cast<unsigned long long>(units(8 + lines)) << 32;
    };
    COSMATI_UNROLL
    for (int n = 0; n < shape.images; ++n) {
      COSMATI_NO_UNROLL
      for (int q = 0; q < shape.across; q += 8) {
        unsigned long long const gradient = gradient_zeros + with_stride(gradient_line(n, row) + q - before);
        COSMATI_UNROLL
        for (int r = 0; r < shape.rows.taps; ++r)
          arch::multiply_warpgroup<Element, Element, true, true, wgrad_taps_channels>(
              reinterpret_cast<float(&)[wgrad_taps_channels / 2]>(sums[r * (wgrad_taps_channels / 2)]),
              gradient,
              image_zeros + with_stride(image_line(n, row) + q + column - before +
                                        r * shape.rows.dilation * shape.image_columns()),
              true);
      }
    }
  }

  COSMATI_DEVICE static int gradient_line(int image, int row) {
    return (image * shape.down + row) * shape.across;
  }
  COSMATI_DEVICE static int image_line(int image, int row) {
    return (image * shape.image_rows() + row * shape.rows.stride) * shape.image_columns();
  }
  // Converts lines to the units of a descriptor's address.
  COSMATI_DEVICE static unsigned units(int lines) {
    return static_cast<unsigned>(lines * (wgrad_taps_line / 16));
  }

  // Blocks are numbered in the order of their tiles and parts; adjacent threads store adjacent runs. A run
  // has two channels of two filters, 8 apart; the sums of filters and channels of different groups are not
  // stored.
  COSMATI_DEVICE static void store(float const (&sums)[sum_count], Params const& all,
                                   WgradTapsTile const& tile, int column) {
    using Run = Vector<float, 4>;
    Index const first = (Index{arch::block_x()} * shape.columns.taps + column) * sum_count * 128;
    int const thread = arch::thread() % 128, filter = tile.filter + thread / 32 * 16 + thread % 32 / 4;
    int const group = all.tiles.group_filters.quotient(filter),
              group_below = all.tiles.group_filters.quotient(filter + 8);
    float* const to = arch::as_global(all.partials) + first + thread * 4;
    COSMATI_UNROLL
    for (int channel = 0; channel < wgrad_taps_channels; channel += 8) {
      int const of = all.tiles.group_channels.quotient(tile.channel + channel + thread % 4 * 2);
      if (of != group && of != group_below) continue;
      COSMATI_UNROLL
      for (int row = 0; row < shape.rows.taps; ++row) {
        int const i = (row * wgrad_taps_channels + channel) / 2;
        arch::store_global(to + i * 128, Run{{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]}});
      }
    }
  }
};

// Grid: tiles * parts; block: a warpgroup for each column of taps, then the producer.
template <class Traits>
COSMATI_KERNEL(Traits::shape.threads(), 1)
wgrad_taps_kernel(COSMATI_PARAMETER WgradTapsParameters params) {
  using Roles = WgradTaps<Traits>;
  constexpr WgradTapsShape shape = Traits::shape;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  arch::let_next_kernel_start();
  if (arch::thread() == 0) {
    arch::prefetch(params.gradient);
    arch::prefetch(params.image[0]);
    COSMATI_UNROLL
    for (int stage = 0; stage < shape.stages; ++stage) {
      arch::init(shared.full[stage], 1);
      arch::init(shared.empty[stage], 4 * shape.columns.taps);
    }
    arch::publish_barriers();
  }
  for (int i = arch::thread(); i < shape.stages * (1 + shape.phases()) * 64; i += shape.threads()) {
    auto& stage = shared.stage[i / (64 * (1 + shape.phases()))];
    int const part = i / 64 % (1 + shape.phases()), unit = i % 64;
    auto& zeros = part == 0 ? stage.gradient.zeros : stage.image[part - 1].zeros;
    arch::store(&zeros[unit / 8][unit % 8 * 16], Vector<float, 4>{});
  }
  arch::publish_to_async();
  arch::block_barrier();
  arch::wait_for_previous_kernel();
  typename Roles::Work const work(params);
  if (int const group = arch::uniform(arch::thread() / 128); group < shape.columns.taps)
    Roles::consume(shared, params, work, group);
  else if (arch::thread() == 128 * shape.columns.taps)
    Roles::produce(shared, params, work);
}

}  // namespace cosmati
