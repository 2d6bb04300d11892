// Filter gradients of depthwise convolutions with few pixels, in a single launch: the tiles of blocks, the
// predicted time, and the program. An alternative of depthwise_rows.
#pragma once
#include <optional>
#include <string>

#include "src/plan/conv/program.h"

namespace cosmati::plan {

struct DepthwiseTileTraits {
  KernelTypes types;
  DepthwiseTileShape shape;
  std::string print() const;
};

// The shapes in the emulator's catalogue, larger ones first: for one block, for a cluster of two, each with
// whole images, and for a cluster of four, whose blocks have parts of images.
inline constexpr DepthwiseTileShape emulated_tile_shapes[] = {
    {4, 2, 7, 3, 3, 1, 1, 1, 1, false, false, false, 7, 1},
    {4, 1, 4, 3, 3, 2, 2, 2, 1, false, false, false, 7, 1},
    {8, 2, 4, 3, 3, 1, 1, 1, 1, true},
    {4, 2, 4, 3, 3, 1, 1, 1, 1, true},
    {4, 1, 2, 3, 3, 2, 2, 2, 1, true},
    {2, 1, 4, 3, 2, 2, 1, 1, 1, true},
    {1, 1, 4, 3, 3, 1, 1, 1, 1, true},
    {4, 1, 2, 5, 5, 1, 1, 2, 1, true}};
inline constexpr int emulated_tile_clusters[] = {1, 2, 4};
constexpr DepthwiseTileShape in_clusters(DepthwiseTileShape shape, int blocks) {
  shape.cluster = blocks, shape.divided = blocks == 4;
  return shape;
}
// The emulator uses these tiles for so many images, and the walk for others.
inline constexpr Index emulated_tile_images = 2;

struct DepthwiseTileChoice {
  DepthwiseTileRecipe recipe;
  double seconds = 0;
};
// The fastest tiles, if all blocks are resident at once. `vector`: the largest vector of contiguous channels
// of all pixels.
std::optional<DepthwiseTileChoice> depthwise_tiles(ConvolutionProblem const& problem, Device const& device,
                                                   int vector);

std::string tile_text(DepthwiseTileRecipe const& recipe);

program::Program depthwise_tile_program(Plan<ConvolutionProblem> const& plan);

}  // namespace cosmati::plan
