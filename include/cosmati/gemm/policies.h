// The named policies by problem shape: small, medium, large, tall (m much larger than n), wide (n much larger
// than m), huge; for each accumulator type.
#pragma once
#include "cosmati/core/number.h"
#include "cosmati/gemm/policy.h"

namespace cosmati {

enum class PolicyName : unsigned char { small, medium, large, tall, wide, huge };
inline constexpr int policy_name_count = 6;

COSMATI_CONSTEXPR char const* name_of(PolicyName name) {
  constexpr char const* names[policy_name_count] = {"small", "medium", "large", "tall", "wide", "huge"};
  return names[static_cast<int>(name)];
}

// A thread's accumulators use about half of its registers with `blocks` resident blocks; a warp is 4 by 8
// lanes, or 8 by 4 if it is tall. `element_bytes` of an operand matters for tensor cores, whose steps are 64
// bytes deep. In the double-buffered loop, more warps share a block's tile, so that loaded operands fit in
// registers alongside the sums.
COSMATI_CONSTEXPR GemmPolicy named_policy(PolicyName name, MainLoop main_loop, Multiply multiply,
                                          DataType sum, int element_bytes = 4) {
  struct Tiles {
    int block_m, block_n, warp_m, warp_n, thread_m, thread_n, blocks;
  };
  constexpr Tiles one_register[policy_name_count] = {
      // f32, s32
      {64, 64, 32, 32, 8, 4, 4},  {128, 64, 32, 64, 8, 8, 3}, {128, 128, 64, 64, 16, 8, 2},
      {256, 64, 64, 32, 8, 8, 2}, {64, 256, 32, 64, 8, 8, 2}, {256, 128, 64, 64, 16, 8, 1}};
  constexpr Tiles two_registers[policy_name_count] = {
      // f64
      {32, 64, 16, 32, 4, 4, 4},  {64, 64, 32, 32, 8, 4, 3},  {128, 64, 32, 64, 8, 8, 1},
      {128, 32, 32, 32, 8, 4, 3}, {32, 128, 16, 64, 4, 8, 3}, {128, 128, 32, 64, 8, 8, 1}};
  constexpr Tiles half_a_register[policy_name_count] = {
      // f16
      {64, 64, 32, 64, 8, 8, 4},   {128, 64, 32, 64, 8, 8, 4},   {128, 128, 64, 64, 16, 8, 2},
      {256, 64, 64, 64, 16, 8, 2}, {64, 256, 32, 128, 8, 16, 2}, {128, 256, 64, 128, 16, 16, 2}};
  constexpr Tiles tensor_cores[policy_name_count] = {
      // tensor cores: a thread has an eighth of a warp's rows and a quarter of its columns
      {64, 64, 32, 32, 4, 8, 4},  {128, 64, 64, 32, 8, 8, 3},  {128, 128, 64, 64, 8, 16, 2},
      {256, 64, 64, 32, 8, 8, 1}, {64, 256, 32, 64, 4, 16, 1}, {128, 256, 64, 64, 8, 16, 1}};
  constexpr Tiles tensor_cores_f64[policy_name_count] = {
      {32, 64, 16, 32, 2, 8, 4},   {64, 64, 32, 32, 4, 8, 3},   {128, 64, 32, 64, 4, 16, 2},
      {256, 64, 32, 64, 4, 16, 1}, {64, 256, 32, 64, 4, 16, 1}, {128, 128, 32, 64, 4, 16, 1}};
  constexpr Tiles tensor_cores_fetched[policy_name_count] = {
      {64, 64, 32, 32, 4, 8, 3},  {128, 64, 32, 32, 4, 8, 2},  {128, 128, 64, 32, 8, 8, 1},
      {256, 64, 64, 32, 8, 8, 1}, {64, 256, 32, 64, 4, 16, 1}, {128, 192, 64, 48, 8, 12, 1}};
  int const at = static_cast<int>(name);
  bool const f64_sums = sum == DataType::f64;
  bool const by_tensor_cores = multiply == Multiply::mma || multiply == Multiply::wmma;
  bool const fetched = main_loop == MainLoop::double_buffered;
  Tiles const tiles = by_tensor_cores && f64_sums  ? tensor_cores_f64[at]
                      : by_tensor_cores && fetched ? tensor_cores_fetched[at]
                      : by_tensor_cores            ? tensor_cores[at]
                      : f64_sums                   ? two_registers[at]
                      : sum == DataType::f16       ? half_a_register[at]
                                                   : one_register[at];
  GemmPolicy policy;
  policy.block_m = tiles.block_m;
  policy.block_n = tiles.block_n;
  policy.block_k = by_tensor_cores ? 64 / element_bytes : 8 * pack_depth_of(multiply);
  policy.warp_m = tiles.warp_m;
  policy.warp_n = tiles.warp_n;
  policy.thread_m = tiles.thread_m;
  policy.thread_n = tiles.thread_n;
  // Interleaving the bytes for dp4a takes registers, so one block less is resident.
  policy.blocks = multiply == Multiply::dp4a && tiles.blocks > 1 ? tiles.blocks - 1 : tiles.blocks;
  policy.main_loop = main_loop;
  policy.multiply = multiply;
  if (multiply == Multiply::wmma) policy.epilogue = EpilogueSchedule::staged;
  policy.stages = main_loop == MainLoop::multistage ? 4 : 2;
  return policy;
}

}  // namespace cosmati
