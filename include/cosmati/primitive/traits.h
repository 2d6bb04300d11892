// Common parts of the primitives' kernels: their trait type, indexing of strided tensors, runs of all inputs
// and outputs.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/primitive/access.h"

namespace cosmati {

// Function: Real, inputs, outputs, and apply(params, in, out) for one element. Final: the same, from the
// reduced terms of one position to the outputs, for reductions. Inputs, Outputs: AccessList.
template <PrimitivePolicy policy_, class Function_, class Inputs_, class Outputs_, class Final_ = Function_>
struct PrimitiveTraits {
  using Function = Function_;
  using Final = Final_;
  using Real = typename Function::Real;
  using Inputs = Inputs_;
  using Outputs = Outputs_;
  static constexpr int threads = policy_.threads;
  static constexpr int width = policy_.width, unroll = policy_.unroll, cached = policy_.cached,
                       cluster = policy_.cluster, along = policy_.along, operation = policy_.operation,
                       groups = policy_.groups;
  static constexpr bool runs_of_terms = policy_.runs_of_terms, packed = policy_.packed, bulk = policy_.bulk;
  static constexpr WindowPolicy window = policy_.window;
  static constexpr int inputs = Function::inputs, outputs = Final::outputs;
  // In the emulator, where one kernel serves many policies, the policy is a parameter.
  COSMATI_DEVICE static constexpr PrimitivePolicy policy(PrimitiveParameters const&) { return policy_; }
};

// The coordinates of position `position` along the axes starting at `axis`.
struct Place {
  unsigned at[max_rank];
  int count;

  COSMATI_DEVICE Place(Divisor const* axis, int axes, unsigned position) : count(axes) {
    COSMATI_UNROLL
    for (int d = 0; d < max_rank; ++d) {
      if (d >= count) break;
      unsigned const rest = d + 1 < count ? axis[d].quotient(position) : 0;
      at[d] = position - rest * static_cast<unsigned>(axis[d].divisor);
      position = rest;
    }
  }
  COSMATI_DEVICE Index offset(Index const* stride) const {
    Index sum = 0;
    COSMATI_UNROLL
    for (int d = 0; d < max_rank; ++d) {
      if (d >= count) break;
      sum += at[d] * stride[d];
    }
    return sum;
  }
};

// Returns how many elements of a run exist.
template <int width>
COSMATI_DEVICE int run_count(Index extent, unsigned run) {
  Index const left = extent - static_cast<Index>(run) * width;
  return left < width ? static_cast<int>(left) : width;
}

// One run of each input, starting with input i, as stored in memory.
template <class Traits, int i = 0, bool exists = (i < Traits::inputs)>
struct RawInputs {
  using Access = typename AccessAt<i, typename Traits::Inputs>::type;
  typename Access::template Raw<Traits::width> own;
  RawInputs<Traits, i + 1> rest;

  // The run of each input begins at offset_of(tensor). Inputs whose bit of `fixed` is set are those of
  // `first`, unless that is null.
  template <class OffsetOf>
  COSMATI_DEVICE void fetch(PrimitiveParameters const& params, OffsetOf const& offset_of, int count,
                            unsigned fixed = 0, RawInputs const* first = nullptr) {
    if (first != nullptr && (fixed >> i & 1) != 0)
      own = first->own;
    else
      Access::template fetch<Traits::width>(params, params.tensor[i],
                                            ContiguousRange{offset_of(params.tensor[i]), count}, own);
    rest.fetch(params, offset_of, count, fixed, first == nullptr ? nullptr : &first->rest);
  }
  COSMATI_DEVICE void unpack(PrimitiveParameters const& params,
                             typename Traits::Real (&in)[Traits::inputs][Traits::width]) const {
    Access::unpack(params, own, in[i]);
    rest.unpack(params, in);
  }
};
template <class Traits, int i>
struct RawInputs<Traits, i, false> {
  template <class OffsetOf>
  COSMATI_DEVICE void fetch(PrimitiveParameters const&, OffsetOf const&, int, unsigned, RawInputs const*) {}
  COSMATI_DEVICE void unpack(PrimitiveParameters const&,
                             typename Traits::Real (&)[Traits::inputs][Traits::width]) const {}
};

// Loads the run of every input, which begins at offset_of(tensor).
template <class Traits, class OffsetOf>
COSMATI_DEVICE void load_inputs(PrimitiveParameters const& params, OffsetOf const& offset_of, int count,
                                typename Traits::Real (&in)[Traits::inputs][Traits::width]) {
  RawInputs<Traits> raw;
  raw.fetch(params, offset_of, count);
  raw.unpack(params, in);
}

template <class Traits, int i = 0, class OffsetOf, int width>
COSMATI_DEVICE void store_outputs(PrimitiveParameters const& params, OffsetOf const& offset_of, int count,
                                  typename Traits::Real const (&out)[Traits::outputs][width]) {
  if constexpr (i < Traits::outputs) {
    using Access = typename AccessAt<i, typename Traits::Outputs>::type;
    PrimitiveTensor const& tensor = params.tensor[primitive_inputs + i];
    Access::store(tensor, ContiguousRange{offset_of(tensor), count}, out[i]);
    store_outputs<Traits, i + 1>(params, offset_of, count, out);
  }
}

template <class Function, class Real, int inputs, int outputs, int width>
COSMATI_DEVICE void apply_to_run(PrimitiveParameters const& params, Real const (&in)[inputs][width],
                                 Real (&out)[outputs][width]) {
  COSMATI_UNROLL
  for (int e = 0; e < width; ++e) {
    Real of[inputs], to[outputs];
    COSMATI_UNROLL
    for (int i = 0; i < inputs; ++i) of[i] = in[i][e];
    Function::apply(params, of, to);
    COSMATI_UNROLL
    for (int i = 0; i < outputs; ++i) out[i][e] = to[i];
  }
}

// The position, and the share of its terms, of a thread of the block. Adjacent lanes access adjacent
// elements.
struct Team {
  int along;           // threads per position
  int across;          // positions per block
  int member, column;  // those of this thread

  COSMATI_DEVICE Team(PrimitivePolicy const& policy, int threads)
      : along(policy.along),
        across(threads / policy.along),
        member(policy.runs_of_terms ? arch::thread() % along : arch::thread() / across),
        column(policy.runs_of_terms ? arch::thread() / along : arch::thread() % across) {}
  // The index within the block of the thread that is member `m` of this thread's position.
  COSMATI_DEVICE int slot(int m) const { return m * across + column; }
};

}  // namespace cosmati
