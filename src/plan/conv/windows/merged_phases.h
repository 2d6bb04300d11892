// dgrad_phases: the four phases of a data gradient with stride 2 in one tile of warp_specialized_kernel
// (cosmati/conv/merged_phases.h).
#pragma once
#include <array>
#include <string>

#include "cosmati/conv/merged_phases_arguments.h"
#include "src/plan/conv/windows/tma_im2col.h"

namespace cosmati::plan {

struct MergedForm {
  std::string refusal;  // not empty: why the phases cannot share a tile
  MergedAxis rows, columns;
  std::array<std::size_t, merged_phases> part{};  // indices of WindowProducts::parts, in the kernel's order
};
// The problem must be one that dgrad_phases() has not refused.
MergedForm merged_form(WindowProducts const& windows);

// `policy` has the tile of one phase.
int merged_shared_bytes(GemmPolicy const& policy, CanonicalGemm const& phase);

Offer<ConvolutionProblem> dgrad_phases(ConvolutionProblem const& problem, Device const& device,
                                       PlanOptions const& options);

}  // namespace cosmati::plan
