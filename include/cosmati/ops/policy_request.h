// A caller's request to kernels with policies: a named policy, individual fields, or both.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cosmati/gemm/policy.h"

namespace cosmati {

// How an operand gets to wgmma: copied into the workspace first, through registers, or loaded by threads.
enum class OperandKind : unsigned char { repacked, registers, threads };

// The planner chooses unspecified fields. Fields override those of the named policy.
struct PolicyRequest {
  PolicyRequest() = default;
  // Parses a list such as "large", "block_m=64,thread_m=4" or "large,stages=5". Whether a name exists depends
  // on the kernel, which checks it. Throws Error(bad_request) listing the valid fields or values.
  PolicyRequest(std::string list);
  PolicyRequest(char const* list) : PolicyRequest(std::string(list)) {}

  std::string text;                // the list as passed, for messages
  std::vector<std::string> names;  // "large"; the last one takes effect
  std::optional<int> block_m, block_n, block_k, warp_m, warp_n, thread_m, thread_n;  // see GemmPolicy
  std::optional<int> stages, blocks, raster_width, cluster_m, cluster_n, cluster_k;
  std::optional<int> warps_k, matrices;
  std::optional<Raster> raster;
  std::optional<EpilogueSchedule> epilogue;
  std::optional<Multiply> multiply;
  std::optional<bool> ping_pong;
  std::optional<Partition> partition;
  std::optional<OperandKind> operands;  // for the warp_specialized main loop
  std::optional<MainLoop> main_loop;    // for the product of a convolution
  std::optional<int> tile;              // for winograd: 2 or 4
  std::optional<int> extent;            // for fft: the maximum extent of a transform
  static constexpr int max_extent = 4096;

  bool empty() const;  // whether nothing is requested

  // Returns the refusal of a kernel without policies, "does not take a policy; --policy large was requested";
  // empty if nothing is requested.
  std::string refusal() const;
  friend bool operator==(PolicyRequest const&, PolicyRequest const&) = default;
};

}  // namespace cosmati
