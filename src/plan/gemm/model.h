// Performance model of GEMM kernels on a GPU: waves of blocks, multiply rate, memory traffic.
#pragma once
#include "cosmati/ops/device.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

struct Footprint {
  int shared_bytes = 0;     // per block
  int blocks_resident = 0;  // per multiprocessor; 0: not even one fits
};

// Returns the size of the kernel's SharedStorage; the composed code asserts the same number.
int shared_storage_bytes(GemmRecipe const& recipe, CanonicalGemm const& problem);

Footprint footprint(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu);

// Returns the blocks of one launch, over all tiles, parts and batches.
Index tiles_of(GemmPolicy const& policy, CanonicalGemm const& problem);

// The work of a launch, over all matrices or all problems of a group.
struct Volume {
  double tiles = 0;                            // including tiles that only fill the last clusters
  double steps = 0, longest = 0;               // steps of k per tile: mean and maximum
  double operand_bytes = 0, result_bytes = 0;  // in memory, each once; including c
  bool of_convolution = false;                 // loaders also locate the elements of windows
  bool of_windows = false;                     // TMA unrolls windows
  bool of_group = false;                       // boxes do not end with an operand
  double read_again_bytes = 0;                 // of a group: bytes_read_again() of all members
};
Volume volume_of(CanonicalGemm const& problem, GemmRecipe const& recipe);

double predict_seconds(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu);
// Returns the predicted time of a group; `common` contains the common properties of its problems.
double predict_seconds(GemmRecipe const& recipe, CanonicalGemm const& common, Gpu const& gpu,
                       Volume const& volume);

// A lower bound of the recipe's predicted time for `splits` parts by split-K: repacking operands, reading
// them once, multiplying at the full rate where the main loop is warp_specialized, and adding the parts. With
// splits = 1 (warp_specialized only), a bound for every partition. 0 for main loops without such a bound.
double least_seconds_of_parts(GemmRecipe const& recipe, CanonicalGemm const& problem, Gpu const& gpu,
                              Volume const& volume, int splits);

}  // namespace cosmati::plan
