// The policies with which the emulator's kernels are compiled: one per main loop and multiply, with small
// tiles.
#pragma once
#include "cosmati/gemm/policy.h"

namespace cosmati::emulator {

// The number of resident blocks of persistent kernels.
inline constexpr int emulated_resident_blocks = 8;

constexpr GemmPolicy emulated_policy(MainLoop main_loop, Multiply multiply, int element_bytes = 4,
                                     Partition partition = Partition::split_k) {
  bool const tensor_cores = multiply == Multiply::mma || multiply == Multiply::wmma;
  GemmPolicy policy;
  policy.block_m = policy.block_n = 32;
  policy.block_k = tensor_cores ? 64 / element_bytes : 8 * pack_depth_of(multiply);
  policy.warp_m = 16;
  policy.warp_n = 32;
  policy.thread_m = tensor_cores ? 2 : 4;
  policy.thread_n = tensor_cores ? 8 : 4;
  policy.stages = main_loop == MainLoop::multistage ? 3 : 2;
  policy.main_loop = main_loop;
  policy.multiply = multiply;
  policy.partition = partition;  // partition tiles is split-K with one part
  if (multiply == Multiply::wmma) policy.epilogue = EpilogueSchedule::staged;
  if (main_loop == MainLoop::warp_specialized) {
    policy.block_m = 64;  // one warpgroup
    policy.block_k = 128 / element_bytes;
    policy.thread_m = 2;
    policy.thread_n = 8;
    policy.epilogue = EpilogueSchedule::staged;
  }
  if (main_loop == MainLoop::warp_specialized && multiply == Multiply::mma) {  // f64, four warps
    policy.block_k = 32;
    policy.warp_m = 32;
    policy.warp_n = 16;
    policy.thread_m = policy.thread_n = 4;
    policy.epilogue = EpilogueSchedule::direct;
  }
  if (main_loop == MainLoop::tiny) {
    policy.warp_m = 32;
    policy.thread_m = 4;
    policy.thread_n = 8;
    policy.stages = 1;
    policy.matrices = 2;
  }
  if (main_loop == MainLoop::gemv) {
    policy.block_m = policy.warp_m = policy.thread_m = 4;
    policy.block_n = 32;
    policy.warp_n = 16;
    policy.warps_k = 2;
    policy.block_k = 64;
  }
  return policy;
}

// Of convolutions by windows, which two blocks of a cluster load for one another if their elements have 16
// bits.
constexpr GemmPolicy emulated_window_policy(int element_bytes, bool filter_gradient) {
  GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, element_bytes);
  if (element_bytes == 2 && !filter_gradient) policy.cluster_n = 2;
  return policy;
}

}  // namespace cosmati::emulator
