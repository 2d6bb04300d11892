// The tuning candidates of `cosmati tune` for a matrix product.
#pragma once
#include <vector>

#include "cosmati/ops/gemm.h"
#include "cosmati/ops/tuning.h"

namespace cosmati::plan {

// Returns a line with this choice for the problem's class, without times; if `only` is not empty, for
// requests of that kernel.
TuningLine line_of(GemmProblem const& problem, Gpu const& gpu, std::string const& only, GemmPolicy policy,
                   int splits);

// Returns the plan's own choice, then the named policies of every main loop and multiply that accept the
// problem, by increasing predicted time, each with its best predicted split. `options` may name a kernel; its
// tuning table and policy are ignored. For the backend cuda; empty for problems outside every class.
std::vector<TuningCandidate> tuning_candidates(GemmProblem const& problem, Device const& device,
                                               PlanOptions const& options);

// Returns the candidates that differ from `centre` in one respect: splits, stream-K, raster, stages, resident
// blocks, epilogue, and for wgmma the tile's width, the cluster and ping-pong.
std::vector<TuningCandidate> neighbors(GemmProblem const& problem, Device const& device,
                                       PlanOptions const& options, TuningLine const& centre);

// Returns `line` as a candidate; empty if its kernel does not accept the problem.
std::vector<TuningCandidate> tuning_candidate_of(GemmProblem const& problem, Device const& device,
                                                 PlanOptions const& options, TuningLine line);

}  // namespace cosmati::plan
