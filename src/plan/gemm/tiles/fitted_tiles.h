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
// `schedule`: how a result that TMA can store is stored.
std::vector<NamedPolicy> fitted_policies(CanonicalGemm const& form, Gpu const& gpu,
                                         EpilogueSchedule schedule = EpilogueSchedule::direct);

// Appends those with one of the names; without names, the fitted ones whose extents no tile of the list has.
void append_tiles(std::vector<NamedPolicy>& list, CanonicalGemm const& form, Gpu const& gpu,
                  EpilogueSchedule schedule, std::vector<std::string> const& names);

}  // namespace cosmati::plan
