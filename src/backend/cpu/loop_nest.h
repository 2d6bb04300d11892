// Loops over several tensors of one shape: the minimum number of loops that visit each index tuple once.
#pragma once
#include <array>
#include <span>

#include "cosmati/core/shape.h"

namespace cosmati::cpu {

// The dimensions of the first layout from its largest stride to its smallest, merged if possible; extents of
// 1 are omitted, so rank may be 0. A layout with a stride of 0 repeats along that dimension.
template <int tensors>
struct LoopNest {
  int rank = 0;
  std::array<Index, max_rank> extent{};
  std::array<std::array<Index, max_rank>, tensors> stride{};

  Index inner() const { return rank == 0 ? 1 : extent[static_cast<std::size_t>(rank - 1)]; }
  Index inner_stride(int tensor) const {
    return rank == 0 ? 1 : stride[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(rank - 1)];
  }
  Index size() const {
    Index product = 1;
    for (int d = 0; d < rank; ++d) product *= extent[static_cast<std::size_t>(d)];
    return product;
  }
  Index rows() const { return inner() == 0 ? 0 : size() / inner(); }
  // The offset of element `linear` (in the order of the nest) of a tensor.
  Index offset(int tensor, Index linear) const {
    if (rank == 1) return linear * inner_stride(tensor);  // avoids the divisions
    Index sum = 0;
    for (int d = rank - 1; d >= 0; --d) {
      auto const at = static_cast<std::size_t>(d);
      sum += linear % extent[at] * stride[static_cast<std::size_t>(tensor)][at];
      linear /= extent[at];
    }
    return sum;
  }
  // True if the tensor's elements are contiguous in the order of the nest.
  bool is_run(int tensor) const {
    Index expected = 1;
    for (int d = rank - 1; d >= 0; --d) {
      auto const at = static_cast<std::size_t>(d);
      if (stride[static_cast<std::size_t>(tensor)][at] != expected) return false;
      expected *= extent[at];
    }
    return true;
  }
  // True if the tensor is a single element, repeated.
  bool is_constant(int tensor) const {
    for (int d = 0; d < rank; ++d)
      if (stride[static_cast<std::size_t>(tensor)][static_cast<std::size_t>(d)] != 0) return false;
    return true;
  }
};

template <int tensors>
LoopNest<tensors> make_loop_nest(std::array<Layout, tensors> const& layouts) {
  Layout const& first = layouts[0];
  int order[max_rank] = {};
  int count = 0;
  for (int d = 0; d < first.rank(); ++d) {
    if (first.extent(d) == 1) continue;
    int at = count++;
    for (; at > 0 && first.stride[order[at - 1]] < first.stride[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  LoopNest<tensors> nest;
  for (int i = 0; i < count; ++i) {
    int const d = order[i];
    auto last = static_cast<std::size_t>(nest.rank);
    bool joins = nest.rank > 0;
    for (std::size_t t = 0; t < tensors && joins; ++t)
      joins = nest.stride[t][last - 1] == layouts[t].stride[d] * first.extent(d);
    if (joins) {
      --last;
      nest.extent[last] *= first.extent(d);
    } else {
      nest.extent[last] = first.extent(d);
      ++nest.rank;
    }
    for (std::size_t t = 0; t < tensors; ++t) nest.stride[t][last] = layouts[t].stride[d];
  }
  return nest;
}

}  // namespace cosmati::cpu
