// Tiles by wgmma that are named by their extents, and those that fit one product.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cosmati/epilogue/expression.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {

// The tile that is named by its extents and its cluster, "128x80" or "128x80_2x1", with as many stages as
// fit; none if that is not its name.
std::optional<NamedPolicy> tile_named(std::string const& name, int element_bytes, int result_bytes);

// Such tiles for this problem, with the fewest columns with which one or two rounds of blocks cover D.
// `schedule`: how a result that TMA can store is stored. `of_windows`: A is a convolution's windows.
std::vector<NamedPolicy> fitted_policies(CanonicalGemm const& form, Gpu const& gpu,
                                         EpilogueSchedule schedule = EpilogueSchedule::direct,
                                         bool of_windows = false);

// Appends those with one of the names; without names, the fitted ones whose extents no tile of the list has.
void append_tiles(std::vector<NamedPolicy>& list, CanonicalGemm const& form, Gpu const& gpu,
                  EpilogueSchedule schedule, std::vector<std::string> const& names, bool of_windows = false);

// Appends 64x256, for groups whose members have few rows, which leave half of the rows of 128x256 empty. In
// groups that also have other members it was predicted 5 % too fast (docs/decisions/0045).
void append_tile_of_groups(std::vector<NamedPolicy>& list, CanonicalGemm const& form, Gpu const& gpu,
                           EpilogueSchedule schedule);

}  // namespace cosmati::plan
