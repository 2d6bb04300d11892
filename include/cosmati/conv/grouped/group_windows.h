// Forward convolutions and data gradients with groups of 16 to 64 channels by wgmma, for 16-bit types whose
// channels are contiguous: y[n, p, q, k] = sum over taps and the channels of k's group of x[n, h, w, c] *
// w[k, r, s, c]. A block keeps the filters of the groups in 64 channels of the image. Its producer copies
// rows of the image by TMA, in lines of 64 channels of a pixel. A product has 64 rows, a patch of 8 x 8
// outputs: a tap is an offset in lines, and a group an offset in a line, so that each pixel is copied once
// for all taps. No stored sum mixes groups, so infinities do not spread from one group to another.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/warpgroup.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/grouped/group_windows_arguments.h"
#include "cosmati/gemm/epilogue.h"
#include "cosmati/gemm/ring.h"
#include "cosmati/tile/matrix_descriptor.h"

namespace cosmati {

template <GroupWindowsShape shape_, class Element_, class Epilogue_, class Destination_>
struct GroupWindowsTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = GroupWindowsParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr GroupWindowsShape shape = shape_;
  static constexpr int threads = shape.threads(), columns = shape.columns_of_product();
  static constexpr Swizzle filter_swizzle = shape.filter_line_channels() == 16   ? Swizzle::bytes32
                                            : shape.filter_line_channels() == 32 ? Swizzle::bytes64
                                                                                 : Swizzle::bytes128;
  static_assert(sizeof(Element) == 2, "a line has 64 channels of 16 bits");
  static_assert(shape.inputs % 16 == 0 && shape.inputs <= 64 && shape.outputs % 8 == 0 && shape.outputs <= 64,
                "a product sums over 16 channels, and has up to 64 columns in units of 8");
  static_assert(shape.columns.step <= 2, "the image is divided into at most two phases");

  struct SharedStorage {
    alignas(1024) unsigned char filter[shape.all_filters_bytes()];
    unsigned char image[shape.stages][shape.phases()][shape.phase_bytes()];
    alignas(16) float staged[shape.consumers * 4][16][GroupWindowsShape::staged_pitch];
    arch::Barrier full[shape.stages], empty[shape.stages], filters;
  };
  static_assert(sizeof(SharedStorage) == shape.shared_bytes());
};

template <class Traits>
struct GroupWindows {
  using Shared = typename Traits::SharedStorage;
  using Element = typename Traits::Element;
  static constexpr GroupWindowsShape shape = Traits::shape;
  static constexpr int sums_of_group = Traits::columns / 2, sum_count = shape.groups() * sums_of_group;
  static constexpr int patch = GroupWindowsShape::patch, line_bytes = GroupWindowsShape::line_bytes;

  typename Traits::Params const& params;
  GroupWindowsArguments const& window;
  int first_group, share;

  // The first output of a step.
  struct Step {
    int image, row, column;
  };
  COSMATI_DEVICE Step step(int number) const {
    int const above = window.steps_across.quotient(number), images = window.steps_down.quotient(above);
    return {images * shape.images, (above - images * window.steps_down.divisor) * shape.down * patch,
            (number - above * window.steps_across.divisor) * shape.across * patch};
  }

  // For a tap, output 0 reads column column_of() of phase phase_of() of the image.
  COSMATI_DEVICE int column_of(int tap) const {
    return (window.left + tap * shape.columns.dilation) >> (shape.columns.step - 1);
  }
  COSMATI_DEVICE int phase_of(int tap) const {
    return (window.left + tap * shape.columns.dilation) & (shape.columns.step - 1);
  }

  // Executed by one thread.
  COSMATI_DEVICE void produce(Shared& shared) const {
    copy_filters(shared);
    RingPlace<shape.stages> ring;
    COSMATI_NO_UNROLL
    for (int i = share; i < window.steps; i += window.shares, ring.advance()) {
      Step const at = step(i);
      arch::wait(shared.empty[ring.stage], ring.parity ^ 1);
      arch::Barrier& full = shared.full[ring.stage];
      arch::arrive_expecting(full, shape.copied_bytes());
      int const corner[4] = {first_group * shape.inputs, at.column + column_of(0),
                             at.row * shape.rows.step + window.top, at.image};
      COSMATI_UNROLL
      for (int phase = 0; phase < shape.phases(); ++phase)
        arch::copy_tile(shared.image[ring.stage][phase], window.image[phase], full, corner);
    }
  }

  // Executed by a warpgroup, for every `consumers`-th patch of a step.
  COSMATI_DEVICE void consume(Shared& shared, int consumer) const {
    arch::wait(shared.filters, 0);
    RingPlace<shape.stages> ring;
    COSMATI_NO_UNROLL
    for (int i = share; i < window.steps; i += window.shares, ring.advance()) {
      Step const at = step(i);
      arch::wait(shared.full[ring.stage], ring.parity);
      int number = consumer;
      COSMATI_NO_UNROLL
      for (; number < shape.patches(); number += shape.consumers) {
        int const above = number / shape.across, n = above / shape.down,
                  column = number % shape.across * patch, row = above % shape.down * patch;
        float sums[sum_count];
        multiply(sums, shared, ring.stage,
                 (n * shape.image_rows() + row * shape.rows.step) * shape.image_columns() + column);
        if (number + shape.consumers >= shape.patches()) release(shared.empty[ring.stage]);
        store(sums, shared, {at.image + n, at.row + row, at.column + column});
      }
      if (consumer >= shape.patches()) release(shared.empty[ring.stage]);
    }
  }

 private:
  // Copies the filters of all groups and taps.
  COSMATI_DEVICE void copy_filters(Shared& shared) const {
    arch::arrive_expecting(shared.filters, shape.filter_bytes());
    int const corner[4] = {0, first_group * shape.group_lines(), 0, 0};
    arch::copy_tile(shared.filter, window.filter, shared.filters, corner);
  }

  COSMATI_DEVICE static void release(arch::Barrier& empty) {
    arch::warp_barrier();
    if (arch::thread() % 32 == 0) arch::arrive(empty);
  }

  // Sets the sums of all groups for the patch whose window begins at `line`.
  COSMATI_DEVICE void multiply(float (&sums)[sum_count], Shared& shared, int stage, int line) const {
    constexpr bool transposed = shape.transposed;
    constexpr int depth_bytes = transposed ? 2 * pattern_bytes(Traits::filter_swizzle) : 32;
    unsigned long long const filter = matrix_descriptor(
        arch::shared_address(shared.filter),
        strides_of_tile(shape.group_lines(), transposed, Traits::filter_swizzle), Traits::filter_swizzle);
    arch::warpgroup_begin();
    COSMATI_UNROLL
    for (int tap = 0; tap < shape.taps(); ++tap) {
      int const row = tap / shape.columns.taps, column = tap % shape.columns.taps;
      int const of_filter = shape.transposed ? shape.taps() - 1 - tap : tap;
      int const of_tap = row * shape.rows.dilation * shape.image_columns() + column_of(column) - column_of(0);
      unsigned const from = arch::shared_address(shared.image[stage][phase_of(column)]) +
                            static_cast<unsigned>((line + of_tap) * line_bytes);
      unsigned long long const image = matrix_descriptor(
          from, {0, shape.rows.step * shape.image_columns() * line_bytes}, Swizzle::bytes128);
      COSMATI_UNROLL
      for (int group = 0; group < shape.groups(); ++group) {
        COSMATI_UNROLL
        for (int depth = 0; depth < shape.inputs / GroupWindowsShape::depth; ++depth)
          arch::multiply_warpgroup<Element, Element, false, transposed, Traits::columns>(
              reinterpret_cast<float(&)[sums_of_group]>(sums[group * sums_of_group]),
              image + static_cast<unsigned>((group * shape.inputs * 2 + depth * 32) / 16),
              filter + static_cast<unsigned>(((of_filter * shape.tap_lines() + group * shape.group_lines()) *
                                                  shape.filter_line_bytes() +
                                              depth * depth_bytes) /
                                             16),
              tap > 0 || depth > 0);
      }
    }
    arch::warpgroup_commit();
    arch::warpgroup_wait<0>();
    arch::fence_registers(sums);
  }

  // Stores the results of a patch. Each warp passes two rows of outputs through shared memory, 32 channels at
  // a time; adjacent threads then have adjacent channels.
  COSMATI_DEVICE void store(float const (&sums)[sum_count], Shared& shared, Step const& first) const {
    using Real = typename Traits::Epilogue::Real;
    constexpr int columns = GroupWindowsShape::staged_columns, run = 8, runs = columns / run;
    static_assert(sum_count % 16 == 0 || sum_count == 8, "a pass has 32 or 16 columns");
    constexpr int used = sum_count < 16 ? 16 : columns;  // columns of a pass
    int const warp = arch::thread() / 32, lane = arch::thread() % 32;
    auto& staged = shared.staged[warp];
    constexpr int passes = sum_count * 2 / used;
    COSMATI_NO_UNROLL
    for (int pass = 0; pass < passes; ++pass) {
      arch::warp_barrier();
      COSMATI_UNROLL
      for (int eight = 0; eight < sum_count / 4; ++eight) {
        if (eight / (used / 8) != pass) continue;
        float const* const four = sums + eight * 4;
        float* const to = &staged[lane / 4][eight % (used / 8) * 8 + lane % 4 * 2];
        arch::store(to, Vector<float, 2>{{four[0], four[1]}});
        arch::store(to + 8 * GroupWindowsShape::staged_pitch, Vector<float, 2>{{four[2], four[3]}});
      }
      arch::warp_barrier();
      COSMATI_NO_UNROLL
      for (int item = lane; item < 16 * runs; item += 32) {
        int const row = item / runs, column = item % runs * run, of_block = pass * used + column;
        int const group = of_block / Traits::columns, channel = of_block % Traits::columns;
        int const p = first.row + warp % 4 * 2 + row / patch, q = first.column + row % patch;
        if (column >= used || channel >= shape.outputs || first_group + group >= window.groups ||
            p >= window.outputs_down || q >= window.outputs_across || first.image >= window.images)
          continue;
        Real value[run];
        COSMATI_UNROLL
        for (int c = 0; c < run; c += 4) {
          auto const four = arch::load<Vector<float, 4>>(&staged[row][column + c]);
          COSMATI_UNROLL
          for (int e = 0; e < 4; ++e) value[c + e] = arch::number_cast<Real>(four[e]);
        }
        int const m = first.image * window.number_image + p * window.number_row + q * window.number_column,
                  n = (first_group + group) * shape.outputs + channel;
        typename Traits::Epilogue::Tile const epilogue(params.epilogue, 0, m, n);
        Traits::Epilogue::apply(epilogue, 0, 0, run, value);
        typename Traits::Destination::Tile const d(params.d, 0, m, n);
        d.store(0, 0, run, value);
      }
    }
  }
};

// Grid: parts of the groups times shares of the steps; block: the consumers' warpgroups, then the producer's
// warp. Dynamic shared memory: SharedStorage.
template <class Traits>
COSMATI_KERNEL(Traits::threads, Traits::shape.blocks)
group_windows_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  using Block = GroupWindows<Traits>;
  constexpr GroupWindowsShape shape = Traits::shape;
  GroupWindowsArguments const& window = params.window;
  auto& shared = arch::shared_storage<typename Traits::SharedStorage>();
  if (arch::thread() == 0) {
    arch::init(shared.filters, 1);
    COSMATI_UNROLL
    for (int stage = 0; stage < shape.stages; ++stage) {
      arch::init(shared.full[stage], 1);
      arch::init(shared.empty[stage], 4 * shape.consumers);
    }
    arch::publish_barriers();
  }
  arch::block_barrier();
  int const share = window.parts.quotient(arch::block_x());
  Block const block{params, window, (arch::block_x() - share * window.parts.divisor) * shape.groups(), share};
  if (int const consumer = arch::uniform(arch::thread() / 128); consumer < shape.consumers)
    block.consume(shared, consumer);
  else if (arch::thread() == 128 * shape.consumers)
    block.produce(shared);
}

}  // namespace cosmati
