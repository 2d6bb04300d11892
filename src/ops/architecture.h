// What follows from a GPU's compute capability, and the architectures that code is compiled for.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/device.h"

namespace cosmati {

// What the code for this GPU is compiled for: its capability with all that this one alone has, "sm_90a".
std::string architecture_of(Gpu const& gpu);

// Why code for this GPU has no wgmma, which compute capability 9.0 alone has, as a sentence; empty: it has.
std::string wgmma_device_violation(Gpu const& gpu);

// A GPU to plan for, and what its code is compiled for.
struct Target {
  Gpu gpu;
  std::string architecture;
};
// By the name of an architecture: "sm_80"; "sm_100a" with what that capability alone has; "sm_100f" with what
// its family has. sm_90 is compiled as sm_90a, since every GPU of that capability runs it and no other GPU
// runs either. `compiled`: the capabilities that the compiler here compiles for (75, 80, ...); empty: it is
// not here, and all that are known count. Throws Error(bad_request) with the legal names.
Target target_of_architecture(std::string const& name, std::vector<int> const& compiled);

// The fields of `gpu` that its compute capability decides: shared memory, threads, blocks and rates.
void set_limits(Gpu& gpu);

}  // namespace cosmati
