// What `cosmati tune` measures of a matrix product.
#pragma once
#include <vector>

#include "cosmati/ops/gemm.h"
#include "cosmati/ops/tuning.h"

namespace cosmati::plan {

// A choice for the problem's class, of those who ask for the kernel `only`, or for none; nothing is measured.
TuningLine line_of(GemmProblem const& problem, Gpu const& gpu, std::string const& only, GemmPolicy policy,
                   int splits);

// The plan's own choice first, then the named policies of every main loop and multiply that accept the
// problem, by increasing predicted time, each with its best predicted split. `options` may name a kernel; its
// tuning table and policy are ignored. For the backend cuda; empty for problems outside every class.
std::vector<TuningContender> contenders(GemmProblem const& problem, Device const& device,
                                        PlanOptions const& options);

// Those that differ from `centre` in one respect: splits, stream-K, raster, stages, resident blocks,
// epilogue, and by wgmma the tile's width, cluster and turns of the warpgroups.
std::vector<TuningContender> neighbours(GemmProblem const& problem, Device const& device,
                                        PlanOptions const& options, TuningLine const& centre);

// `line` as a contender; nothing if no kernel for the problem can be made of it.
std::vector<TuningContender> contender_of(GemmProblem const& problem, Device const& device,
                                          PlanOptions const& options, TuningLine line);

}  // namespace cosmati::plan
