// Convolutions whose image is copied to shared memory once for all taps, by wgmma.
#pragma once
#include <array>
#include <string>

#include "cosmati/conv/image_windows_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> image_windows(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

program::Program image_windows_program(Plan<ConvolutionProblem> const& plan);

struct ImageWindowsTraits {
  ImageWindowsShape shape;
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};

// The shapes of the emulator's catalogue, for f16.
inline constexpr std::array<ImageWindowsShape, 6> emulated_image_windows_shapes{{
    {{3, 1, 1}, {3, 1, 1}, 4, 1, 2, 2, 3, false, false, false},
    {{3, 1, 1}, {3, 1, 1}, 5, 1, 1, 2, 9, true, true, false},
    {{3, 1, 1}, {3, 1, 1}, 6, 1, 1, 3, 3, true, false, true},
    {{3, 1, 1}, {3, 1, 1}, 4, 2, 1, 2, 9, false, true, true},
    {{2, 1, 2}, {3, 1, 1}, 3, 2, 1, 1, 2, false, false, false},
    {{2, 1, 2}, {3, 1, 1}, 3, 1, 1, 2, 4, true, false, false},
}};

}  // namespace cosmati::plan
