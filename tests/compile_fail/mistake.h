// The common part of the mistakes of this folder: a valid GEMM, of which each file changes one thing.
#pragma once
#include "cosmati/gemm/kernel.h"

namespace mistake {

using namespace cosmati;

// 64 x 64 by 2 x 2 warps of 4 x 8 lanes.
inline constexpr GemmPolicy right{
    .block_m = 64, .block_n = 64, .block_k = 8, .warp_m = 32, .warp_n = 32, .thread_m = 8, .thread_n = 4};

template <class Element, int width = 1>
using Source = StridedSource<Element, Along::k, width>;

template <GemmPolicy policy = right, class Element = float, class Sum = float,
          class Epilogue = IdentityEpilogue<Sum>, class Destination = StridedDestination<Sum, 1>,
          class A = Source<Element>>
using Gemm = GemmTraits<policy, A, Source<Element>, Sum, Epilogue, Destination>;

// As in a launch: the parameters first.
template <class AnyGemm>
typename AnyGemm::Params parameters() {
  return {};
}

}  // namespace mistake
