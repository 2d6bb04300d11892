// Writes the unrolled (im2col) matrix of a convolution's input to the workspace (Kirk and Hwu, figure 16.18,
// with strides, padding, dilation and groups): the data that WindowSource otherwise provides to a main loop.
// docs/convolution.md counts the memory sectors accessed.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/conv/unroll_arguments.h"
#include "cosmati/conv/window_source.h"

namespace cosmati {

// Grid: (ceil(blocks of a line * lines / (other threads * unroll_lines_of_thread)), 1, groups); block:
// unroll_threads. Types of the same size share a kernel, since the bit pattern of zero is the same.
template <class Source>
COSMATI_KERNEL(unroll_threads, 4)
unroll_kernel(COSMATI_PARAMETER UnrollParameters params) {
  using Element = typename Source::Element;
  constexpr int width = Source::width;
  constexpr bool deep = Source::along == Along::k;
  static_assert(!Source::stepwise);
  Index const batch = params.first_batch + arch::block_z();
  Source const source(params.from, batch, 0, params.outer, params.depth);
  auto const step = source.step(0);
  int const lanes = 1 << params.log2_lanes, others = unroll_threads >> params.log2_lanes;
  int const lines_of_block = params.blocks_of_line.quotient(arch::block_x());
  int const block_of_line = arch::block_x() - lines_of_block * params.blocks_of_line.divisor;
  int const place = (block_of_line * lanes + (arch::thread() & (lanes - 1))) * width;
  int const places = deep ? params.depth : params.outer, lines = deep ? params.outer : params.depth;
  if (place >= places) return;
  int line = lines_of_block * others * unroll_lines_of_thread + (arch::thread() >> params.log2_lanes);
  Element* to = arch::as_global(static_cast<Element*>(params.to)) + batch * params.matrix_pitch +
                line * params.pitch + place;
  // One of the two indices is fixed; its part of the address is computed once.
  auto const kept = source.row(deep ? 0 : place, 0);
  COSMATI_UNROLL
  for (int i = 0; i < unroll_lines_of_thread; ++i, line += others, to += others * params.pitch) {
    if (line >= lines) return;
    auto const run = deep ? source.template run<false>(source.row(line, place), step, 0)
                          : source.template run<false>(kept, step, line);
    Vector<Element, width> value{};
    if (run.valid == width) {
      value = arch::load_constant<Vector<Element, width>>(run.address);
    } else {
      COSMATI_UNROLL
      for (int e = 0; e < width; ++e)
        if (e < run.valid) value[e] = arch::load_constant<Element>(run.address + e);
    }
    arch::store_global(to, value);
  }
}

}  // namespace cosmati
