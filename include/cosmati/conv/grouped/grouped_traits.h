// The types, constants and shared memory of the grouped convolution on tensor cores (conv/grouped/grouped.h).
#pragma once
#include "cosmati/conv/grouped/grouped_arguments.h"

namespace cosmati {

// `fixed`: shape_ is the shape of the launch; otherwise only its number of warps applies.
template <GroupedShape shape_, bool fixed_, class Element_, class Epilogue_, class Destination_>
struct GroupedTraits {
  using Element = Element_;
  using Epilogue = Epilogue_;
  using Destination = Destination_;
  using Params = GroupedParameters<typename Epilogue::Arguments, typename Destination::Arguments>;
  static constexpr bool fixed = fixed_;
  static constexpr int threads = shape_.threads(), blocks = shape_.blocks, fragments = shape_.fragments;
  static constexpr int steps = fixed ? shape_.steps() : unfixed_grouped_steps;
  static constexpr int works = fixed ? shape_.works_of_warp() : unfixed_grouped_works;
  static constexpr int run = fixed ? shape_.run() : 8;
  static_assert(shape_.bytes == static_cast<int>(sizeof(Element)));
  COSMATI_DEVICE static GroupedShape shape(GroupedArguments const& window) {
    if constexpr (fixed) return shape_;
    return window.shape;
  }
  static constexpr int rows_together = fixed ? shape_.rows_together() : 2;
  // Zeros, the windows, the sums of a pass as (pixel, channel), and the outputs; shape.shared_bytes() in
  // total.
  struct alignas(16) SharedStorage {
    unsigned zero[4];
    COSMATI_DEVICE unsigned char const* zeros() { return reinterpret_cast<unsigned char const*>(zero); }
    COSMATI_DEVICE unsigned char* image() { return reinterpret_cast<unsigned char*>(this) + sizeof(zero); }
    COSMATI_DEVICE float* staged(GroupedShape const& of) {
      return reinterpret_cast<float*>(image() + of.image_bytes());
    }
    COSMATI_DEVICE GroupedPixel* pixels(GroupedShape const& of) {
      return reinterpret_cast<GroupedPixel*>(image() + of.image_bytes() + of.staged_bytes());
    }
  };
};

}  // namespace cosmati
