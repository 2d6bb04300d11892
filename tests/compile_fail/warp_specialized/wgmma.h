// The common part of the mistakes with wgmma: a valid warp_specialized GEMM.
#pragma once
#include "cosmati/gemm/warp_specialized.h"

namespace mistake {

using namespace cosmati;

// 128 x 64 by two warpgroups of 64 rows; steps of 128 bytes.
inline constexpr GemmPolicy right{.block_m = 128,
                                  .block_n = 64,
                                  .block_k = 64,
                                  .warp_m = 16,
                                  .warp_n = 64,
                                  .thread_m = 2,
                                  .thread_n = 16,
                                  .stages = 4,
                                  .main_loop = MainLoop::warp_specialized,
                                  .multiply = Multiply::wgmma};

template <GemmPolicy policy = right, class Element = bf16, Along along_b = Along::k, class Sum = float>
using Gemm = WarpSpecializedTraits<policy, TensorSource<Element, Along::k>, TensorSource<Element, along_b>,
                                   Sum, IdentityEpilogue<Sum>, TensorDestination<Sum>>;

// As in a launch: the parameters first.
template <class AnyGemm>
typename AnyGemm::Params parameters() {
  return {};
}

}  // namespace mistake
