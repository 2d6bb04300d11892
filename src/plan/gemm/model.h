// Performance model of GEMM kernels on a GPU: waves of blocks, multiply rate, memory traffic.
#pragma once
#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

struct Footprint {
  int shared_bytes = 0;     // of a block
  int blocks_resident = 0;  // on a multiprocessor; 0: not one fits
};

// Bytes of shared memory that the kernel's SharedStorage has: the composed code asserts the same number.
int shared_storage_bytes(GemmRecipe const& recipe, CanonicalGemm const& problem);

Footprint footprint(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu);

// Blocks of one launch, over all tiles, parts and batches.
Index tiles_of(GemmPolicy const& policy, CanonicalGemm const& problem);

// What a launch computes, of all matrices, or of all problems of a group.
struct Volume {
  double tiles = 0;                            // those included that only fill the last clusters
  double steps = 0, longest = 0;               // of k, in a tile: their mean, and the most
  double operand_bytes = 0, result_bytes = 0;  // in memory, each once; of c too
};
Volume volume_of(CanonicalGemm const& problem, GemmRecipe const& recipe);

double predict_seconds(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu);
// Predicted time of a group; `common` holds what its problems share.
double predict_seconds(GemmRecipe const& recipe, CanonicalGemm const& common, Gpu const& gpu,
                       Volume const& volume);

}  // namespace cosmati::plan
