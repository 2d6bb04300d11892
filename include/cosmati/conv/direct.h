// The direct convolution: one thread computes one element of the result, by nested loops over the taps and
// channels (or images and pixels) that it sums (Kirk and Hwu, figure 16.12, with strides, padding, dilation
// and groups). It accepts every problem; data is reused only through the caches.
#pragma once
#include "cosmati/arch/arithmetic.h"
#include "cosmati/arch/convert.h"
#include "cosmati/arch/thread.h"
#include "cosmati/conv/conv_destination.h"
#include "cosmati/conv/phases_arguments.h"
#include "cosmati/gemm/epilogue.h"

namespace cosmati {

template <class ElementA_, class ElementB_, class Sum_, class Epilogue_, class Destination_>
struct DirectTraits {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = GemmParameters<WindowArguments, WindowArguments, typename Epilogue::Arguments,
                                typename Destination::Arguments>;
  static constexpr int threads = 128;
};

// One operand at a fixed outer position, accessed by depth.
template <class Element>
struct DirectOperand {
  WindowArguments const& arguments;
  Element const* data;
  int down, right;

  COSMATI_DEVICE DirectOperand(WindowArguments const& all, Index batch, int outer)
      : arguments(all), data(static_cast<Element const*>(all.data) + batch * all.batch_stride) {
    Digits const at = all.outer.extents.digits(outer);
    data += all.outer.offset(at);
    down = all.top + all.outer.down(at), right = all.left + all.outer.right(at);
  }
  COSMATI_DEVICE bool has(Digits const& depth) const {
    return static_cast<unsigned>(down + arguments.depth.down(depth)) <
               static_cast<unsigned>(arguments.height) &&
           static_cast<unsigned>(right + arguments.depth.right(depth)) <
               static_cast<unsigned>(arguments.width);
  }
  COSMATI_DEVICE Element at(Digits const& depth) const {
    return arch::load_constant<Element>(data + arguments.depth.offset(depth));
  }
};

// Computes block `block` of the result of a group.
template <class Traits>
COSMATI_DEVICE void compute_direct(typename Traits::Params const& params, int block) {
  using Sum = typename Traits::Sum;
  using Real = typename Traits::Epilogue::Real;
  Index const index = Index{block} * Traits::threads + arch::thread();
  if (index >= params.m * params.n) return;
  int const columns = static_cast<int>(params.n), m = static_cast<int>(index / columns),
            n = static_cast<int>(index - Index{m} * columns);
  Index const batch = params.schedule.first_batch + arch::block_z();
  DirectOperand<typename Traits::ElementA> const a(params.a, batch, m);
  DirectOperand<typename Traits::ElementB> const b(params.b, batch, n);
  int const middle = params.a.depth.extents.middle.divisor, last = params.a.depth.extents.last.divisor;
  int const first = static_cast<int>(params.k / (Index{middle} * last));
  Sum sum = 0;
  Digits depth{};
  for (depth.first = 0; depth.first < first; ++depth.first)
    for (depth.middle = 0; depth.middle < middle; ++depth.middle)
      for (depth.last = 0; depth.last < last; ++depth.last)
        if (a.has(depth) && b.has(depth))
          sum = arch::multiply_add(arch::number_cast<Sum>(a.at(depth)), arch::number_cast<Sum>(b.at(depth)),
                                   sum);
  Real value[1] = {arch::number_cast<Real>(sum)};
  typename Traits::Epilogue::Tile const tile(params.epilogue, batch, m, n);
  Traits::Epilogue::apply(tile, 0, 0, 1, value);
  typename Traits::Destination::Tile const d(params.d, batch, m, n);
  d.store(0, 0, 1, value);
}

// Grid: (ceil(elements of a group's result / threads), 1, groups); block: threads. m * n < 2^31.
template <class Traits>
COSMATI_KERNEL(Traits::threads, 1)
direct_convolution_kernel(COSMATI_PARAMETER typename Traits::Params params) {
  compute_direct<Traits>(params, arch::block_x());
}

// The same for a strided data gradient: the blocks of all phases.
template <class Traits, int max_phases>
COSMATI_KERNEL(Traits::threads, 1)
direct_of_phases_kernel(COSMATI_PARAMETER PhasesParameters<typename Traits::Params, max_phases> phases) {
  int const phase = phase_of_block(phases, arch::block_x());
  compute_direct<Traits>(phases.phase[phase], arch::block_x() - phases.first_block[phase]);
}

}  // namespace cosmati
